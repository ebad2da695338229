import { expect, test } from 'vitest';
import { MemoryPageStore } from '../memory/memory-page-store.ts';
import { checkedPageStore } from './checked-page-store.ts';
import type { PageStore } from './page-store.ts';

const bytes = Uint8Array.of(1, 2, 3);
const stored = { status: 'stored' };

test.each(['', '.hidden', '-a', 'A', 'a/b', '../x', 'a b', 'ä', 'k'.repeat(201)])('no store sees the key %j', async (key) => {
  const store = checkedPageStore(new MemoryPageStore());
  await expect(store.get([{ key }])).rejects.toMatchObject({ code: 'invalid-page-key' });
  await expect(store.has([{ key }])).rejects.toMatchObject({ code: 'invalid-page-key' });
  await expect(store.delete([{ key }])).rejects.toMatchObject({ code: 'invalid-page-key' });
  await expect(store.put([{ key, bytes }])).rejects.toMatchObject({ code: 'invalid-page-key' });
  expect(store.statistics().stored).toBe(0);
});

test('keys up to the last character of the limit are fine, and affinities have limits too', async () => {
  const store = checkedPageStore(new MemoryPageStore());
  expect(await store.put([{ key: 'k'.repeat(200), affinity: 'a'.repeat(64), bytes }])).toEqual([stored]);
  await expect(store.put([{ key: 'k', affinity: 'a'.repeat(65), bytes }])).rejects.toMatchObject({ code: 'invalid-page-key' });
  await expect(store.put([{ key: 'k', affinity: '', bytes }])).rejects.toMatchObject({ code: 'invalid-page-key' });
});

test('a key that is twice in a batch refuses all of it', async () => {
  const store = checkedPageStore(new MemoryPageStore());
  const twice = [
    { key: 'a', bytes },
    { key: 'b', bytes },
    { key: 'a', bytes },
  ];
  await expect(store.put(twice)).rejects.toMatchObject({ code: 'duplicate-page-key' });
  expect(await store.has([{ key: 'b' }])).toEqual([false]);
});

test('batches may be as long as the store says, and no longer', async () => {
  const store = checkedPageStore(new MemoryPageStore());
  const keys = Array.from({ length: store.limits.maxBatch + 1 }, (_, i) => ({ key: `k${i}` }));
  expect(await store.has(keys.slice(1))).toHaveLength(store.limits.maxBatch);
  await expect(store.has(keys)).rejects.toMatchObject({ code: 'batch-too-large' });
});

test('pages beyond the limit are refused one by one, the others of the batch are stored', async () => {
  const memory = new MemoryPageStore();
  const seen: number[] = [];
  const small: PageStore = {
    specVersion: 'v1',
    name: 'small',
    supports: memory.supports,
    limits: { maxBatch: 4, maxPageBytes: 3 },
    has: (keys) => memory.has(keys),
    get: (keys) => memory.get(keys),
    put: (entries) => {
      seen.push(...entries.map((entry) => entry.bytes.length));
      return memory.put(entries);
    },
    delete: (keys) => memory.delete(keys),
    list: () => memory.list(),
    statistics: () => memory.statistics(),
    close: () => memory.close(),
  };
  const refused = { status: 'refused', reason: 'too-large' };
  const sized = (key: string, length: number) => ({ key, bytes: new Uint8Array(length) });
  expect(await checkedPageStore(small).put([sized('a', 4), sized('b', 3), sized('c', 9)])).toEqual([refused, stored, refused]);
  expect(await checkedPageStore(small).put([sized('d', 4)])).toEqual([refused]);
  expect(seen).toEqual([3]);
});

test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('a page cannot be kept for %d ms', async (ttlMs) => {
  const store = checkedPageStore(new MemoryPageStore());
  await expect(store.put([{ key: 'a', bytes, ttlMs }])).rejects.toMatchObject({ code: 'invalid-ttl' });
});

test('an empty batch is answered by itself', async () => {
  const store = checkedPageStore(new MemoryPageStore());
  expect([await store.has([]), await store.get([]), await store.put([]), await store.delete([])]).toEqual([[], [], [], []]);
});

test('a store for another version of the interface is refused', () => {
  const later = Object.assign(Object.create(new MemoryPageStore()), { specVersion: 'v2' });
  expect(() => checkedPageStore(later)).toThrowError(expect.objectContaining({ code: 'plugin-spec-version' }));
});
