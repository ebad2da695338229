import type { PageStore } from '@bufferwise/adapter-kit';
import { DirectOpfsPageStore } from './direct-opfs-page-store.ts';
import { type Answer, type Ask, MESSAGE_BYTES, type OpenMessage, type SentError } from './protocol.ts';

/** Opens stores for whoever asks this worker to. Other messages are left to others. Where nobody can ask, as in Node, it does nothing. */
export function serveOpfsPages(): void {
  globalThis.addEventListener?.('message', (event: MessageEvent<OpenMessage>) => {
    if (event.data?.bufferwise === 'open-page-store') void open(event.data, event.ports[0]);
  });
}

async function open({ options, aliveLock }: OpenMessage, port: MessagePort): Promise<void> {
  const say = (answer: Answer, transfer: Transferable[] = []) => port.postMessage(answer, transfer);
  const end = await holdLock(aliveLock);
  say({ kind: 'alive' });
  try {
    const store = await DirectOpfsPageStore.open(options);
    port.onmessage = ({ data }: MessageEvent<Ask>) => void answer(store, data, say, end);
    say({ kind: 'opened', statistics: store.statistics() });
  } catch (error) {
    say({ kind: 'not-opened', error: sent(error) });
    end();
  }
}

async function answer(
  store: PageStore,
  ask: Ask,
  say: (answer: Answer, transfer?: Transferable[]) => void,
  end: () => void,
): Promise<void> {
  const { id } = ask;
  try {
    const value = await carryOut(store, ask);
    const transfer = ask.call === 'get' ? (value as (Uint8Array | null)[]).flatMap((page) => page?.buffer ?? []) : [];
    say({ kind: 'answer', id, value, statistics: store.statistics() }, transfer as ArrayBuffer[]);
  } catch (error) {
    say({ kind: 'failed', id, error: sent(error), statistics: store.statistics() });
  }
  if (ask.call === 'close') end();
}

async function carryOut(store: PageStore, ask: Ask): Promise<unknown> {
  switch (ask.call) {
    case 'has':
      return store.has(ask.keys);
    case 'get':
      return firstPages(store, ask.keys);
    case 'put':
      return store.put(ask.entries);
    case 'delete':
      return store.delete(ask.keys);
    case 'list':
      return store.list?.({ cursor: ask.cursor });
    case 'close':
      await store.close();
      return null;
  }
}

async function firstPages(store: PageStore, keys: Parameters<PageStore['get']>[0]): Promise<(Uint8Array | null)[]> {
  const pages: (Uint8Array | null)[] = [];
  let bytes = 0;
  for (const key of keys) {
    if (bytes >= MESSAGE_BYTES) break;
    const [page] = await store.get([key]);
    pages.push(page);
    bytes += page?.length ?? 0;
  }
  return pages;
}

/** Takes a lock until what is returned is called, or the worker ends. */
function holdLock(name: string): Promise<() => void> {
  if (navigator.locks === undefined) return Promise.resolve(() => {});
  return new Promise((resolve, reject) => {
    navigator.locks.request(name, () => new Promise<void>((release) => resolve(release))).catch(reject);
  });
}

function sent(error: unknown): SentError {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const bare = error instanceof Error || error instanceof DOMException ? error : String(error);
  return { code: typeof code === 'string' ? code : undefined, message: String(message), error: bare };
}
