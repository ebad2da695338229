import { deleteDB } from 'idb';
import { afterEach, expect, test, vi } from 'vitest';
import { type BrowserStore, type BrowserStoreOptions, openBrowserStore } from '../../src/browser/open-browser-store.ts';
import { pagesWorker, removeDirectory } from '../opfs/stores.ts';

const opened: { store: BrowserStore['store']; name: string }[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const { store } of opened) await store.close();
  for (const { name } of opened.splice(0)) {
    await removeDirectory(name);
    await deleteDB(name);
  }
});

async function open(options: BrowserStoreOptions & { name: string }): Promise<BrowserStore> {
  const browserStore = await openBrowserStore(options);
  opened.push({ store: browserStore.store, name: options.name });
  return browserStore;
}

const freshName = () => `test-${crypto.randomUUID()}`;
const page = { key: 'a', bytes: Uint8Array.of(1, 2, 3) };

test('with a worker, pages go to files, within half of what the browser gives', async () => {
  const { store, kind, whyNotOpfs, quotaBytes, estimate } = await open({
    worker: pagesWorker,
    name: freshName(),
    quotaBytes: 1e18,
  });
  expect({ kind, whyNotOpfs }).toEqual({ kind: 'opfs', whyNotOpfs: null });
  expect(estimate?.quotaBytes).toBeGreaterThan(0);
  expect(quotaBytes).toBe((estimate?.quotaBytes ?? 0) / 2);
  expect(store.statistics().quotaBytes).toBe(quotaBytes);
  expect(await store.put([page])).toEqual([{ status: 'stored' }]);
});

test('a second tab gets a database, and a third one the same', async () => {
  const name = freshName();
  await open({ worker: pagesWorker, name });
  const second = await open({ worker: pagesWorker, name, lockMs: 30 });
  const third = await open({ worker: pagesWorker, name, lockMs: 30 });
  expect(second).toMatchObject({ kind: 'indexeddb', whyNotOpfs: 'store-locked', cause: { code: 'store-locked' } });
  await second.store.put([page]);
  expect(await third.store.get([page])).toEqual([page.bytes]);
});

test.each<[string, BrowserStoreOptions]>([
  ['no-opfs', {}],
  ['worker-lost', { worker: () => new Worker(new URL('/no-such-script.js', location.href), { type: 'module' }) }],
])('without files, because of %s, pages go to a database', async (whyNotOpfs, options) => {
  const { store, kind, ...how } = await open({ ...options, name: freshName(), quotaBytes: 5e6 });
  expect({ kind, whyNotOpfs: how.whyNotOpfs, quotaBytes: how.quotaBytes }).toEqual({
    kind: 'indexeddb',
    whyNotOpfs,
    quotaBytes: 5e6,
  });
  expect(await store.put([page])).toEqual([{ status: 'stored' }]);
});

test('the browser is asked to keep the pages only when it was told to', async () => {
  const persist = vi.spyOn(navigator.storage, 'persist');
  const first = await open({ worker: pagesWorker, name: freshName() });
  expect(persist).not.toHaveBeenCalled();
  expect(first.persisted).toBe(await navigator.storage.persisted());
  const second = await open({ worker: pagesWorker, name: freshName(), persist: true });
  expect(persist).toHaveBeenCalledOnce();
  expect(second.persisted).toBe(await navigator.storage.persisted());
});

test('where neither works, both reasons are told', async () => {
  vi.spyOn(IDBFactory.prototype, 'open').mockImplementation(() => {
    throw new DOMException('not in this window', 'SecurityError');
  });
  await expect(openBrowserStore({ name: freshName() })).rejects.toMatchObject({
    code: 'no-browser-store',
    message: expect.stringContaining('not in this window'),
    cause: [{ code: 'no-opfs' }, { code: 'no-indexeddb' }],
  });
});

test('options that make no sense are refused, and open nothing', async () => {
  await expect(openBrowserStore({ worker: pagesWorker, name: 'a/b' })).rejects.toMatchObject({ code: 'invalid-option' });
  await expect(openBrowserStore({ quotaBytes: 0 })).rejects.toMatchObject({ code: 'invalid-option' });
});
