import type { PageKey } from '../../page-store/page-key.ts';
import { ensureEqual } from '../assertions.ts';
import type { ConformancePromise } from '../suite.ts';
import { keysOf, type PageStoreHarness, pageOf, withStore } from './harness.ts';

const STORED = { status: 'stored' };

export const roundTrip: ConformancePromise<PageStoreHarness> = {
  name: 'gives back what was stored, byte by byte, whatever its size',
  run: (harness) =>
    withStore(harness, async (store) => {
      const sizes = [1, 3, 64, 4095, 4096, 70_001].filter((size) => size <= store.limits.maxPageBytes);
      for (const size of sizes) {
        const key = { key: `size-${size}` };
        // A part of a larger array is just that part.
        const bytes = pageOf(size, size + 8).subarray(5, 5 + size);
        ensureEqual(await store.put([{ ...key, bytes }]), [STORED], `put of ${size} bytes`);
        ensureEqual(await store.has([key]), [true], `has of ${size} bytes`);
        ensureEqual(await store.get([key]), [bytes], `get of ${size} bytes`);
      }
    }),
};

export const missing: ConformancePromise<PageStoreHarness> = {
  name: 'has nothing that was never stored',
  run: (harness) =>
    withStore(harness, async (store) => {
      ensureEqual(await store.has(keysOf(2)), [false, false], 'has of an empty store');
      ensureEqual(await store.get(keysOf(2)), [null, null], 'get of an empty store');
      ensureEqual(await store.delete(keysOf(2)), [false, false], 'delete of an empty store');
    }),
};

export const firstWins: ConformancePromise<PageStoreHarness> = {
  name: 'keeps the first page of a key, and says of a second one that it exists',
  run: (harness) =>
    withStore(harness, async (store) => {
      const [key] = keysOf(1);
      await store.put([{ ...key, bytes: pageOf(1) }]);
      ensureEqual(await store.put([{ ...key, bytes: pageOf(2) }]), [{ status: 'exists' }], 'a second put');
      ensureEqual(await store.get([key]), [pageOf(1)], 'get after a second put');
    }),
};

export const ownCopy: ConformancePromise<PageStoreHarness> = {
  name: 'keeps its own copy: nobody else can change a page',
  run: (harness) =>
    withStore(harness, async (store) => {
      const [key] = keysOf(1);
      const bytes = pageOf(1);
      await store.put([{ ...key, bytes }]);
      bytes.fill(9);
      const [found] = await store.get([key]);
      ensureEqual(found, pageOf(1), 'get after the caller changed what it had stored');
      found?.fill(7);
      ensureEqual(await store.get([key]), [pageOf(1)], 'get after the caller changed what it had got');
    }),
};

export const deletes: ConformancePromise<PageStoreHarness> = {
  name: 'forgets what is deleted, says what was there, and takes it anew',
  run: (harness) =>
    withStore(harness, async (store) => {
      const [a, b, c] = keysOf(3);
      await store.put([
        { ...a, bytes: pageOf(1) },
        { ...b, bytes: pageOf(2) },
      ]);
      ensureEqual(await store.delete([c, a]), [false, true], 'delete');
      ensureEqual(await store.has([a, b]), [false, true], 'has after delete');
      ensureEqual(await store.get([a, b]), [null, pageOf(2)], 'get after delete');
      ensureEqual(await store.put([{ ...a, bytes: pageOf(4) }]), [STORED], 'put after delete');
      ensureEqual(await store.get([a]), [pageOf(4)], 'get of what was stored anew');
    }),
};

export const names: ConformancePromise<PageStoreHarness> = {
  name: 'tells all valid keys apart, with an affinity and without',
  run: (harness) =>
    withStore(harness, async (store) => {
      const long = 'k'.repeat(200);
      const keys: PageKey[] = [
        { key: '0' },
        { key: 'a' },
        { key: 'a.b' },
        { key: 'a..b' },
        { key: 'a.' },
        { key: 'a-b_c.0' },
        { key: long },
        { key: `${long.slice(1)}l` },
        { key: 'chain-1', affinity: 'chain' },
        { key: 'chain-2', affinity: 'chain' },
        { key: 'lone', affinity: 'c'.repeat(64) },
      ];
      const size = Math.min(store.limits.maxBatch, keys.length);
      for (let i = 0; i < keys.length; i += size) {
        await store.put(keys.slice(i, i + size).map((key, j) => ({ ...key, bytes: pageOf(i + j) })));
      }
      for (const [i, key] of keys.entries()) ensureEqual(await store.get([key]), [pageOf(i)], `get of ${key.key}`);
    }),
};
