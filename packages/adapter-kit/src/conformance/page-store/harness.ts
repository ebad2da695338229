import type { PageKey } from '../../page-store/page-key.ts';
import type { PageStore } from '../../page-store/page-store.ts';
import { settled } from '../assertions.ts';
import { DEFAULT_PATIENCE_MS, type SuiteHarness } from '../suite.ts';

/** What an author of a store tells the suite. */
export interface PageStoreHarness extends SuiteHarness {
  /** A fresh store that shares nothing with others. With `quotaBytes` one of so much room, where `supports.quota`. */
  create(options?: { quotaBytes?: number }): PageStore | Promise<PageStore>;
  /** Closes the store and removes what it left. Default: `store.close()`. */
  destroy?(store: PageStore): void | Promise<void>;
  /** Changes the bytes on the medium behind the store's back, as a bad disk does; `change` gets them as they are stored. */
  tamper?(store: PageStore, key: PageKey, change: (stored: Uint8Array) => Uint8Array): void | Promise<void>;
  /** Closes a store and opens another on what it left. Needed where `supports.persistent`. */
  reopen?(store: PageStore): PageStore | Promise<PageStore>;
  /** Opens another store on the same pages, beside the first. Needed where `supports.shared`. */
  another?(store: PageStore): PageStore | Promise<PageStore>;
  /** Lets time pass for the store, or waits. Default: waits. */
  elapse?(store: PageStore, ms: number): void | Promise<void>;
}

/** A fresh store for the length of a story. */
export async function withStore(
  harness: PageStoreHarness,
  story: (store: PageStore) => Promise<void>,
  options?: { quotaBytes?: number },
): Promise<void> {
  const store = await harness.create(options);
  try {
    await story(store);
  } finally {
    await destroyStore(harness, store);
  }
}

export async function destroyStore(harness: PageStoreHarness, store: PageStore): Promise<void> {
  const patienceMs = harness.patienceMs ?? DEFAULT_PATIENCE_MS;
  await settled(Promise.resolve(harness.destroy ? harness.destroy(store) : store.close()), patienceMs, 'destroy');
}

/** Bytes that look like no others: they begin with the seed. */
export function pageOf(seed: number, length = 64): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => (seed * 31 + i * (2 * seed + 1)) & 255);
}

/** `page-0`, `page-1`, … */
export function keysOf(count: number, prefix = 'page'): PageKey[] {
  return Array.from({ length: count }, (_, i) => ({ key: `${prefix}-${i}` }));
}
