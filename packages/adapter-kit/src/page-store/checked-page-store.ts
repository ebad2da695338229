import { AdapterError } from '../errors.ts';
import { type CallOptions, checkSpecVersion } from '../plugin.ts';
import { checkPageKey, type PageKey } from './page-key.ts';
import type { PageEntry, PageStore, PutOutcome } from './page-store.ts';

/**
 * A store whose arguments are checked, so that no store has to: what users call stores through. Pages that exceed
 * `limits.maxPageBytes` are answered as refused here, the rest of their batch goes on; an empty batch never reaches the store.
 *
 * Calls reject with {AdapterError} `invalid-page-key`, `duplicate-page-key`, `batch-too-large` or `invalid-ttl` before anything happens.
 *
 * @throws {AdapterError} `plugin-spec-version` on a store of another version
 */
export function checkedPageStore(store: PageStore): PageStore {
  checkSpecVersion(store);
  const checked: PageStore = {
    specVersion: store.specVersion,
    name: store.name,
    supports: store.supports,
    limits: store.limits,
    exact: store.exact ?? true,
    async has(keys, options) {
      return checkBatch(store, keys) ? store.has(keys, options) : empty(options);
    },
    async get(keys, options) {
      return checkBatch(store, keys) ? store.get(keys, options) : empty(options);
    },
    async put(entries, options) {
      if (!checkBatch(store, entries)) return empty(options);
      entries.forEach(checkTtl);
      return putWhatFits(store, entries, options);
    },
    async delete(keys, options) {
      return checkBatch(store, keys) ? store.delete(keys, options) : empty(options);
    },
    statistics: () => store.statistics(),
    close: () => store.close(),
  };
  if (!store.supports.list) return checked;
  return {
    ...checked,
    async list(options) {
      if (store.list === undefined)
        throw new AdapterError('unsupported-call', `${store.name} says that it lists, and has no list`);
      return store.list(options);
    },
  };
}

/** @returns false when there is nothing to do */
function checkBatch(store: PageStore, keys: readonly PageKey[]): boolean {
  if (keys.length > store.limits.maxBatch) {
    throw new AdapterError(
      'batch-too-large',
      `${store.name}: a call with ${keys.length} pages; it takes ${store.limits.maxBatch} at a time, so make more calls`,
    );
  }
  const seen = new Set<string>();
  for (const each of keys) {
    checkPageKey(each);
    if (seen.has(each.key))
      throw new AdapterError('duplicate-page-key', `${store.name}: ${each.key} is twice in one call; name each page once`);
    seen.add(each.key);
  }
  return keys.length > 0;
}

function checkTtl({ key, ttlMs }: PageEntry): void {
  if (ttlMs === undefined || (Number.isFinite(ttlMs) && ttlMs > 0)) return;
  throw new AdapterError('invalid-ttl', `the page ${key} is to be kept for ${ttlMs} ms; pass a time above 0, or leave it out`);
}

async function putWhatFits(
  store: PageStore,
  entries: readonly PageEntry[],
  options: CallOptions | undefined,
): Promise<readonly PutOutcome[]> {
  const fitting = entries.filter(({ bytes }) => bytes.length <= store.limits.maxPageBytes);
  const outcomes = fitting.length === 0 ? await empty<PutOutcome>(options) : await store.put(fitting, options);
  if (fitting.length === entries.length) return outcomes;
  let next = 0;
  return entries.map(({ bytes }) =>
    bytes.length <= store.limits.maxPageBytes ? outcomes[next++] : { status: 'refused', reason: 'too-large' },
  );
}

async function empty<T>(options: CallOptions | undefined): Promise<readonly T[]> {
  options?.signal?.throwIfAborted();
  return [];
}
