import type { PageStore } from '@bufferwise/adapter-kit';
import { ConnectorError, type ConnectorErrorCode } from '../errors.ts';
import { IndexedDbPageStore } from '../indexeddb/indexeddb-page-store.ts';
import { DirectOpfsPageStore } from '../opfs/direct-opfs-page-store.ts';
import { OpfsPageStore } from '../opfs/opfs-page-store.ts';

export interface BrowserStoreOptions {
  /** As of `OpfsPageStore`. Left out: only code that runs in a dedicated worker itself gets files. */
  readonly worker?: Worker | (() => Worker);
  /** Name of the directory, or of the database. Default `bufferwise-pages`. */
  readonly name?: string;
  /** Bytes that pages may take up. Default 1 GiB; half of what the browser gives to the origin, at most. */
  readonly quotaBytes?: number;
  /** Asks the browser to keep the data of this origin also when it needs room, which may ask the user. Default false: nobody is asked. */
  readonly persist?: boolean;
  /** So many milliseconds a store that has the directory is waited for. Default 2,000. */
  readonly lockMs?: number;
}

/** A store, and how it came to be. */
export interface BrowserStore {
  readonly store: PageStore;
  /** `opfs`: files, of this store alone. `indexeddb`: a database, which other tabs may have, too. */
  readonly kind: 'opfs' | 'indexeddb';
  /**
   * Why it is no store in files; null when it is one. `store-locked`: another tab has them; `no-opfs`: there are none here, or no worker was given;
   * `worker-lost`: the worker did not load; `opfs-failed`: see `cause`.
   */
  readonly whyNotOpfs: 'store-locked' | 'no-opfs' | 'worker-lost' | 'opfs-failed' | null;
  /** What `OpfsPageStore.open` rejected with, for a log. */
  readonly cause?: unknown;
  /** What the store was opened with. */
  readonly quotaBytes: number;
  /** What the browser says of this origin, in bytes; null where it says nothing. It is free to round. */
  readonly estimate: { readonly usedBytes: number; readonly quotaBytes: number } | null;
  /** Whether the browser has promised not to remove the data of this origin by itself. */
  readonly persisted: boolean;
}

const DEFAULT_QUOTA_BYTES = 1 << 30;
const SHARE_OF_ORIGIN = 0.5;

/**
 * The best store that a browser has: files where it can have them, else IndexedDB. A second tab gets IndexedDB as well, since files are one store's at a
 * time; its pages are other ones, with a quota of their own.
 *
 * Rejects with {ConnectorError} `invalid-option`, and with `no-browser-store` when neither can be used, as in some private windows (`cause` has both
 * reasons): go on without a store.
 */
export async function openBrowserStore(options: BrowserStoreOptions = {}): Promise<BrowserStore> {
  const { worker, name = 'bufferwise-pages', quotaBytes: wanted = DEFAULT_QUOTA_BYTES, persist = false, lockMs } = options;
  const estimate = await estimateOf();
  const quotaBytes = estimate === null ? wanted : Math.min(wanted, estimate.quotaBytes * SHARE_OF_ORIGIN);
  const opened = await open(worker, { directory: name, quotaBytes, lockMs });
  return { ...opened, quotaBytes, estimate, persisted: await isPersisted(persist) };
}

async function open(
  worker: BrowserStoreOptions['worker'],
  options: { directory: string; quotaBytes: number; lockMs?: number },
): Promise<Pick<BrowserStore, 'store' | 'kind' | 'whyNotOpfs' | 'cause'>> {
  let cause: unknown;
  try {
    const store = await (worker === undefined ? DirectOpfsPageStore.open(options) : OpfsPageStore.open({ ...options, worker }));
    return { store, kind: 'opfs', whyNotOpfs: null };
  } catch (error) {
    if (codeOf(error) === 'invalid-option') throw error;
    cause = error;
  }
  try {
    const store = await IndexedDbPageStore.open({ database: options.directory, quotaBytes: options.quotaBytes });
    return { store, kind: 'indexeddb', whyNotOpfs: reasonOf(cause), cause };
  } catch (error) {
    throw new ConnectorError(
      'no-browser-store',
      `this browser keeps no pages: ${(cause as Error)?.message}; ${(error as Error)?.message}; go on without a store`,
      { cause: [cause, error] },
    );
  }
}

const codeOf = (error: unknown) => (error as { code?: ConnectorErrorCode } | null)?.code;

function reasonOf(error: unknown): BrowserStore['whyNotOpfs'] {
  const code = codeOf(error);
  return code === 'store-locked' || code === 'no-opfs' || code === 'worker-lost' ? code : 'opfs-failed';
}

async function estimateOf(): Promise<BrowserStore['estimate']> {
  const { usage, quota } = (await navigator.storage?.estimate?.().catch(() => undefined)) ?? {};
  return quota === undefined || !(quota > 0) ? null : { usedBytes: usage ?? 0, quotaBytes: quota };
}

/** A browser that refuses says so by false; one that does not know the question keeps nothing for sure. */
async function isPersisted(ask: boolean): Promise<boolean> {
  const { storage } = navigator;
  return (await (ask ? storage?.persist?.() : storage?.persisted?.())?.catch(() => false)) ?? false;
}
