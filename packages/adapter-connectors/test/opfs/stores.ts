import type { PageKey, PageStore } from '@bufferwise/adapter-kit';
import { OpfsPageStore, type OpfsPageStoreOptions } from '../../src/opfs/opfs-page-store.ts';
import type { Tampering } from './tampering-worker.ts';

/** A worker as applications load it. */
export function pagesWorker(): Worker {
  return new Worker(new URL('../../src/opfs/worker.ts', import.meta.url), { type: 'module' });
}

/** A worker whose files can be spoilt with {@link tamper}. */
export function tamperingWorker(): Worker {
  return new Worker(new URL('./tampering-worker.ts', import.meta.url), { type: 'module' });
}

const stores = new WeakMap<PageStore, OpfsPageStoreOptions & { readonly worker: Worker }>();

let numDirectories = 0;
export function freshDirectory(): string {
  return `test-${crypto.randomUUID()}-${numDirectories++}`;
}

/** A store with a worker of its own that can be spoilt. */
export async function openTampered(options: Omit<OpfsPageStoreOptions, 'worker'>): Promise<OpfsPageStore> {
  const worker = tamperingWorker();
  const store = await OpfsPageStore.open({ ...options, worker });
  stores.set(store, { ...options, worker });
  return store;
}

export async function destroy(store: PageStore): Promise<void> {
  await store.close();
  const options = stores.get(store);
  options?.worker.terminate();
  if (options?.directory !== undefined) await removeDirectory(options.directory);
}

export async function reopenTampered(store: PageStore): Promise<OpfsPageStore> {
  await store.close();
  const options = stores.get(store);
  options?.worker.terminate();
  return openTampered({ ...options });
}

export async function tamper(store: PageStore, { key }: PageKey, change: (stored: Uint8Array) => Uint8Array): Promise<void> {
  const worker = stores.get(store)?.worker as Worker;
  const sealed = (await ask(worker, { tamper: 'read', key })) as Uint8Array | null;
  if (sealed !== null) await ask(worker, { tamper: 'write', key, sealed: change(sealed) });
}

export async function removeDirectory(directory: string): Promise<void> {
  const root = await navigator.storage.getDirectory();
  await root.removeEntry(directory, { recursive: true }).catch((error: DOMException) => {
    if (error.name !== 'NotFoundError') throw error;
  });
}

function ask(worker: Worker, message: Tampering): Promise<unknown> {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = ({ data }) => {
      port1.close();
      resolve(data);
    };
    worker.postMessage(message, [port2]);
  });
}
