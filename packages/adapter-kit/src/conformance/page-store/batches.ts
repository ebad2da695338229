import { ensure, ensureEqual, settled } from '../assertions.ts';
import { type ConformancePromise, DEFAULT_PATIENCE_MS } from '../suite.ts';
import { destroyStore, keysOf, type PageStoreHarness, pageOf, withStore } from './harness.ts';

export const limits: ConformancePromise<PageStoreHarness> = {
  name: 'states how much it takes at a time, and takes it',
  run: (harness) =>
    withStore(harness, async (store) => {
      const { maxBatch, maxPageBytes } = store.limits;
      for (const [name, limit] of Object.entries({ maxBatch, maxPageBytes })) {
        ensure(Number.isSafeInteger(limit) && limit >= 1, `limits.${name} is ${limit}; it must be a whole number from 1 on`);
      }
      const keys = keysOf(Math.min(maxBatch, 256));
      const outcomes = await store.put(keys.map((key, i) => ({ ...key, bytes: pageOf(i, 16) })));
      ensure(
        outcomes.length === keys.length && outcomes.every(({ status }) => status === 'stored'),
        `a put of ${keys.length} pages was answered with ${JSON.stringify(outcomes.find(({ status }) => status !== 'stored'))}`,
      );
      ensureEqual(
        await store.get(keys),
        keys.map((_, i) => pageOf(i, 16)),
        'get of a whole batch',
      );
      const large = { key: 'large' };
      const bytes = pageOf(3, Math.min(maxPageBytes, 1 << 20));
      await store.put([{ ...large, bytes }]);
      const [found] = await store.get([large]);
      ensure(found?.length === bytes.length, `a page of ${bytes.length} bytes came back with ${found?.length}`);
    }),
};

export const order: ConformancePromise<PageStoreHarness> = {
  name: 'answers in the order of the question, one for each',
  run: (harness) =>
    withStore(harness, async (store) => {
      const count = Math.min(6, store.limits.maxBatch);
      const keys = keysOf(count);
      const there = keys.filter((_, i) => i % 2 === 1);
      if (there.length > 0) await store.put(there.map((key) => ({ ...key, bytes: pageOf(keys.indexOf(key)) })));
      const asked = [...keys].reverse();
      const expected = asked.map((key) => (there.includes(key) ? pageOf(keys.indexOf(key)) : null));
      ensureEqual(await store.get(asked), expected, 'get');
      ensureEqual(
        await store.has(asked),
        expected.map((bytes) => bytes !== null),
        'has',
      );
      ensureEqual(
        await store.put(asked.map((key) => ({ ...key, bytes: pageOf(9) }))),
        expected.map((bytes) => ({ status: bytes === null ? 'stored' : 'exists' })),
        'put of pages that are there and of pages that are not',
      );
    }),
};

export const overlap: ConformancePromise<PageStoreHarness> = {
  name: 'serves many calls at once, and of two writers of a key lets one win',
  run: (harness) =>
    withStore(harness, async (store) => {
      const patienceMs = harness.patienceMs ?? DEFAULT_PATIENCE_MS;
      const keys = keysOf(40);
      await settled(
        Promise.all(keys.map((key, i) => store.put([{ ...key, bytes: pageOf(i) }]))),
        patienceMs,
        'many calls of put at once',
      );
      const found = await Promise.all(keys.map((key) => store.get([key])));
      ensureEqual(
        found,
        keys.map((_, i) => [pageOf(i)]),
        'many calls of get at once',
      );

      const raced = { key: 'raced' };
      const [first, second, ...seen] = await Promise.all([
        store.put([{ ...raced, bytes: pageOf(101, 5000) }]),
        store.put([{ ...raced, bytes: pageOf(102, 5000) }]),
        store.get([raced]),
        store.get([raced]),
      ]);
      const winners = [first[0].status, second[0].status].sort();
      ensureEqual(winners, ['exists', 'stored'], 'two writers of one key');
      const winner = pageOf(first[0].status === 'stored' ? 101 : 102, 5000);
      for (const [bytes] of seen) if (bytes !== null) ensureEqual(bytes, winner, 'a reader during two writes');
      ensureEqual(await store.get([raced]), [winner], 'get after two writes of one key');
    }),
};

export const isolated: ConformancePromise<PageStoreHarness> = {
  name: 'has nothing of another store',
  run: (harness) =>
    withStore(harness, async (store) => {
      const other = await harness.create();
      try {
        await other.put([{ key: 'foreign', bytes: pageOf(1) }]);
        ensureEqual(await store.has([{ key: 'foreign' }]), [false], 'has of a page that another store was given');
      } finally {
        await destroyStore(harness, other);
      }
    }),
};

export const counts: ConformancePromise<PageStoreHarness> = {
  name: 'counts what it gave out, did not have, and stored',
  run: (harness) =>
    withStore(harness, async (store) => {
      const [a, b] = keysOf(2);
      await store.put([{ ...a, bytes: pageOf(1, 100) }]);
      await store.put([{ ...a, bytes: pageOf(1, 100) }]);
      await store.get([a]);
      await store.get([a]);
      await store.get([b]);
      const { hits, misses, damaged, stored, refused, bytesRead, bytesWritten } = store.statistics();
      ensureEqual(
        { hits, misses, damaged, stored, refused, bytesRead, bytesWritten },
        { hits: 2, misses: 1, damaged: 0, stored: 1, refused: 0, bytesRead: 200, bytesWritten: 100 },
        'statistics',
      );
    }),
};
