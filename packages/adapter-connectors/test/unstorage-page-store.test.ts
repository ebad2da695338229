import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PageKey, PageStore } from '@bufferwise/adapter-kit';
import { describePageStore } from '@bufferwise/adapter-kit/conformance/page-store';
import { createStorage, type Storage } from 'unstorage';
import fsDriver from 'unstorage/drivers/fs';
import memoryDriver from 'unstorage/drivers/memory';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type UnstorageLike, UnstoragePageStore, type UnstoragePageStoreOptions } from '../src/unstorage/unstorage-page-store.ts';

function harness(makeStorage: () => Storage, persistent: boolean) {
  const storages = new WeakMap<PageStore, Storage>();
  const open = (storage: Storage) => {
    const store = new UnstoragePageStore({ storage, persistent, timeoutMs: 30_000 });
    storages.set(store, storage);
    return store;
  };
  const storageOf = (store: PageStore) => storages.get(store) as Storage;
  return {
    create: () => open(makeStorage()),
    async tamper(store: PageStore, { key }: PageKey, change: (stored: Uint8Array) => Uint8Array) {
      const item = `bufferwise:${key}.page`;
      const stored = await storageOf(store).getItemRaw<Uint8Array>(item);
      if (stored !== null) await storageOf(store).setItemRaw(item, Buffer.from(change(new Uint8Array(stored))));
    },
    async reopen(store: PageStore) {
      await store.close();
      return open(storageOf(store));
    },
  };
}

let folder = '';
let numFolders = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bufferwise-unstorage-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describePageStore(
  'unstorage, memory,',
  harness(() => createStorage({ driver: memoryDriver() }), false),
);
describePageStore(
  'unstorage, file system,',
  harness(() => createStorage({ driver: fsDriver({ base: join(folder, String(numFolders++)) }) }), true),
);

describe('a driver in trouble', () => {
  const page = { key: 'a', bytes: Uint8Array.of(1, 2, 3) };
  const FULL = { status: 'refused', reason: 'full' };
  const open = (broken: Partial<UnstorageLike>, options: Partial<UnstoragePageStoreOptions> = {}) => {
    const storage = Object.assign(createStorage({ driver: memoryDriver() }), broken) as UnstorageLike;
    return new UnstoragePageStore({ storage, timeoutMs: 60_000, ...options });
  };
  const fails = () => Promise.reject(new Error('the driver is broken'));
  const throws = () => {
    throw new Error('the driver is broken');
  };
  const hangs = () => new Promise<never>(() => {});

  test.each([fails, throws])('that fails, all is missing and nothing is taken', async (bad) => {
    const store = open({ hasItem: bad, getItemRaw: bad, setItemRaw: bad, removeItem: bad, getKeys: bad });
    expect(await store.get([page])).toEqual([null]);
    expect(await store.put([page])).toEqual([FULL]);
    expect(await store.has([page])).toEqual([false]);
    expect(await store.delete([page])).toEqual([false]);
    await expect(store.list()).rejects.toMatchObject({ code: 'store-unavailable' });
    expect(store.statistics()).toMatchObject({ driverErrors: 5, misses: 1, refused: 1 });
    await store.close();
  });

  test('that hangs, a call ends in time, and with its signal', async () => {
    const store = open({ getItemRaw: hangs, setItemRaw: hangs }, { timeoutMs: 20 });
    expect(await store.get([page])).toEqual([null]);
    expect(await store.put([{ ...page, key: 'b' }])).toEqual([FULL]);
    expect(store.statistics()).toMatchObject({ timeouts: 2, driverErrors: 0 });
    const caller = new AbortController();
    const call = store.get([{ key: 'c' }], { signal: caller.signal });
    caller.abort('enough');
    await expect(call).rejects.toBe('enough');
    expect(store.statistics().timeouts).toBe(2);
    await store.close();
  });

  test.each([['a text'], [{ an: 'object' }], [7]])('that gives %j back, the page is damaged, and removed', async (value) => {
    const removed: string[] = [];
    const store = open({
      getItemRaw: async () => value,
      removeItem: async (item) => void removed.push(item),
    });
    expect(await store.get([page])).toEqual([null]);
    expect(store.statistics().damaged).toBe(1);
    expect(removed).toEqual(['bufferwise:a.page']);
  });

  test('items of others are not listed', async () => {
    const store = open({ getKeys: async () => ['bufferwise:a.page', 'bufferwise:A.page', 'bufferwise:b', 'other:c.page'] });
    expect(await store.list()).toEqual({ keys: [{ key: 'a' }], cursor: null });
  });
});

test.each([{ base: 'a/b' }, { base: '' }, { maxBatch: 0 }, { maxBytesInFlight: 0.5 }])('%j opens no store', (wrong) => {
  const storage = createStorage({ driver: memoryDriver() });
  expect(() => new UnstoragePageStore({ storage, ...wrong })).toThrowError(expect.objectContaining({ code: 'store-options' }));
});
