import type { PageStore } from '@bufferwise/adapter-kit';
import { describePageStore } from '@bufferwise/adapter-kit/conformance/page-store';
import { deleteDB, openDB } from 'idb';
import { afterEach, describe, expect, test } from 'vitest';
import { IndexedDbPageStore, type IndexedDbPageStoreOptions } from '../../src/indexeddb/indexeddb-page-store.ts';
import { isPageOf, pageOf } from '../support/seeded-pages.ts';

const STORED = { status: 'stored' };
const databases = new WeakMap<PageStore, string>();
const databaseOf = (store: PageStore) => databases.get(store) as string;

async function open(options: IndexedDbPageStoreOptions = {}): Promise<IndexedDbPageStore> {
  const database = options.database ?? `test-${crypto.randomUUID()}`;
  const store = await IndexedDbPageStore.open({ ...options, database });
  databases.set(store, database);
  return store;
}

async function changeStored(database: string, key: string, change: (stored: Uint8Array) => unknown): Promise<void> {
  const connection = await openDB(database);
  const stored = await connection.get('pages', key);
  if (stored !== undefined) await connection.put('pages', change(stored), key);
  connection.close();
}

describePageStore('IndexedDB', {
  create: ({ quotaBytes } = {}) => open({ quotaBytes }),
  async destroy(store) {
    await store.close();
    await deleteDB(databaseOf(store));
  },
  tamper: (store, { key }, change) => changeStored(databaseOf(store), key, change),
  async reopen(store) {
    await store.close();
    return open({ database: databaseOf(store) });
  },
  another: (store) => open({ database: databaseOf(store) }),
});

describe('a store in IndexedDB', () => {
  const open_ = new Set<IndexedDbPageStore>();
  const fresh = async (options?: IndexedDbPageStoreOptions) => {
    const store = await open(options);
    open_.add(store);
    return store;
  };
  afterEach(async () => {
    const names = new Set([...open_].map(databaseOf));
    for (const store of open_) await store.close();
    open_.clear();
    for (const name of names) await deleteDB(name);
  });
  const entriesOf = (count: number, name: string, length = 10_000) =>
    Array.from({ length: count }, (_, i) => ({ key: `${name}-${i}`, bytes: pageOf(`${name}-${i}`, length) }));

  test('keeps what is used, also by another tab, and lets go of what is not', async () => {
    const first = await fresh({ quotaBytes: 200_000 });
    const second = await fresh({ quotaBytes: 200_000, database: databaseOf(first) });
    await first.put(entriesOf(15, 'page'));
    await second.get([{ key: 'page-0' }]);
    await second.put(entriesOf(10, 'later'));
    await first.get([{ key: 'page-0' }]);
    await first.put(entriesOf(10, 'latest'));
    expect(await second.has([{ key: 'page-0' }, { key: 'page-1' }, { key: 'later-0' }])).toEqual([true, false, false]);
    expect(first.statistics().usedBytes).toBeLessThanOrEqual(200_000);
    const connection = await openDB(databaseOf(first));
    const pages: Uint8Array[] = await connection.getAll('pages');
    connection.close();
    expect(pages.reduce((sum, { length }) => sum + length, 0)).toBeLessThanOrEqual(200_000);
  });

  test('of two tabs that store at once none goes beyond the quota', async () => {
    const first = await fresh({ quotaBytes: 150_000 });
    const second = await fresh({ quotaBytes: 150_000, database: databaseOf(first) });
    const puts = [first, second, first, second].map((store, i) => store.put(entriesOf(12, `writer-${i}`)));
    for (const outcomes of await Promise.all(puts)) expect(outcomes).toEqual(new Array(12).fill(STORED));
    const connection = await openDB(databaseOf(first));
    const notes: { bytes: number }[] = await connection.getAll('notes');
    expect(notes.length).toBe((await connection.getAllKeys('pages')).length);
    const sum = notes.reduce((total, { bytes }) => total + bytes, 0);
    expect(sum).toBe(await connection.get('totals', 'usedBytes'));
    expect(sum).toBeLessThanOrEqual(150_000);
    connection.close();
  });

  test('that is opened with a smaller quota lets go of the least recently used pages', async () => {
    const first = await fresh({ quotaBytes: 200_000 });
    await first.put(entriesOf(15, 'page'));
    await first.get([{ key: 'page-3' }]);
    await first.close();
    const second = await fresh({ quotaBytes: 50_000, database: databaseOf(first) });
    expect(await second.has([{ key: 'page-3' }, { key: 'page-0' }])).toEqual([true, false]);
    expect(second.statistics().usedBytes).toBeLessThanOrEqual(50_000);
  });

  test.each([['a text'], [7], [{ an: 'object' }], [new Uint8Array(3).buffer]])(
    'finds %j in place of a page: a miss, and it goes',
    async (value) => {
      const store = await fresh();
      await store.put(entriesOf(1, 'page'));
      await changeStored(databaseOf(store), 'page-0', () => value);
      expect(await store.get([{ key: 'page-0' }])).toEqual([null]);
      expect(store.statistics()).toMatchObject({ damaged: 1, usedBytes: 0 });
      expect(await store.put(entriesOf(1, 'page'))).toEqual([STORED]);
    },
  );

  test('counts its bytes anew when the total is none', async () => {
    const first = await fresh();
    await first.put(entriesOf(3, 'page'));
    const { usedBytes } = first.statistics();
    const connection = await openDB(databaseOf(first));
    await connection.put('totals', Number.NaN, 'usedBytes');
    connection.close();
    await first.delete([{ key: 'never-stored' }]);
    expect(first.statistics().usedBytes).toBe(usedBytes);
  });

  test('goes on when the browser or another tab has had its connection closed', async () => {
    const store = await fresh();
    await store.put(entriesOf(2, 'page'));
    // A newer form of the database closes all connections; its removal makes room for this one again.
    await deleteDB(databaseOf(store));
    expect(await store.get([{ key: 'page-0' }])).toEqual([null]);
    expect(await store.put(entriesOf(1, 'page'))).toEqual([STORED]);
    const [page] = await store.get([{ key: 'page-0' }]);
    expect(isPageOf('page-0', page, 10_000)).toBe(true);
  });

  test('a call with more than goes into a transaction is answered in order', async () => {
    const store = await fresh();
    const entries = entriesOf(20, 'page', 1_000_000);
    expect(await store.put(entries)).toEqual(entries.map(() => STORED));
    const pages = await store.get(entries);
    expect(entries.filter(({ key }, i) => !isPageOf(key, pages[i], 1_000_000))).toEqual([]);
  });

  test('rejects with the reason of a signal that is aborted meanwhile', async () => {
    const store = await fresh();
    const caller = new AbortController();
    const put = store.put(entriesOf(20, 'page', 1_000_000), { signal: caller.signal });
    caller.abort('enough');
    await expect(put).rejects.toBe('enough');
    expect(await store.put(entriesOf(1, 'other'))).toEqual([STORED]);
  });

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('a quota of %d bytes opens no store', async (quotaBytes) => {
    await expect(IndexedDbPageStore.open({ quotaBytes })).rejects.toMatchObject({ code: 'invalid-option' });
  });
});
