import type { PageStore } from '../../page-store/page-store.ts';
import { BrokenPromiseError, ensure, ensureEqual } from '../assertions.ts';
import type { ConformancePromise } from '../suite.ts';
import { destroyStore, keysOf, type PageStoreHarness, pageOf, withStore } from './harness.ts';

export const lists: ConformancePromise<PageStoreHarness> = {
  name: 'lists exactly the pages that are there, piece by piece',
  flag: 'list',
  run: (harness) =>
    withStore(harness, async (store) => {
      ensureEqual(await listed(store), [], 'list of an empty store');
      const keys = keysOf(Math.min(2 * store.limits.maxBatch + 3, 200));
      for (const key of keys) await store.put([{ ...key, bytes: pageOf(1, 8) }]);
      await store.delete([keys[1]]);
      const expected = keys.map(({ key }) => key).filter((key) => key !== keys[1].key);
      ensureEqual((await listed(store)).sort(), expected.sort(), 'list');
    }),
};

export const expires: ConformancePromise<PageStoreHarness> = {
  name: 'gives a page out until its time has come, and not after',
  flag: 'ttl',
  run: (harness) =>
    withStore(harness, async (store) => {
      const [short, long, forever] = keysOf(3);
      const elapse = harness.elapse ?? ((_store, ms) => new Promise<void>((resolve) => setTimeout(resolve, ms)));
      await store.put([{ ...short, bytes: pageOf(1), ttlMs: 400 }]);
      await store.put([{ ...long, bytes: pageOf(2), ttlMs: 600_000 }]);
      await store.put([{ ...forever, bytes: pageOf(3) }]);
      ensureEqual(await store.get([short]), [pageOf(1)], 'get before the time');
      await elapse(store, 1_000);
      ensureEqual(await store.get([short]), [null], 'get after the time');
      ensureEqual(await store.has([short]), [false], 'has after the time');
      ensureEqual(await store.get([long]), [pageOf(2)], 'get of a page whose time has not come');
      ensureEqual(await store.get([forever]), [pageOf(3)], 'get of a page without a time');
      ensureEqual(await store.put([{ ...short, bytes: pageOf(4) }]), [{ status: 'stored' }], 'put after the time');
    }),
};

const QUOTA = 4096;

export const quota: ConformancePromise<PageStoreHarness> = {
  name: 'takes up no more than its quota, and has what it said it stored last',
  flag: 'quota',
  run: (harness) =>
    withStore(
      harness,
      async (store) => {
        const { quotaBytes } = store.statistics();
        ensure(quotaBytes !== null, 'statistics().quotaBytes is null in a store with a quota');
        let last = -1;
        for (let i = 0; i < 100; i++) {
          const [outcome] = await store.put([{ key: `filling-${i}`, bytes: pageOf(i, 256) }]);
          if (outcome.status === 'stored') last = i;
          else ensureEqual(outcome, { status: 'refused', reason: 'full' }, `put number ${i}`);
          const { usedBytes } = store.statistics();
          ensure(
            usedBytes !== null && usedBytes <= quotaBytes,
            `${usedBytes} of ${quotaBytes} bytes are used after put number ${i}`,
          );
        }
        ensure(last >= 0, `a page of 256 bytes found no room in ${QUOTA} bytes`);
        ensureEqual(await store.get([{ key: `filling-${last}` }]), [pageOf(last, 256)], 'get of what was stored last');
        ensureEqual(
          await store.put([{ key: 'huge', bytes: pageOf(1, QUOTA + 1) }]),
          [{ status: 'refused', reason: 'too-large' }],
          'put of a page larger than the quota',
        );
        await store.delete([{ key: `filling-${last}` }]);
        ensureEqual(await store.put([{ key: 'later', bytes: pageOf(5, 256) }]), [{ status: 'stored' }], 'put after a delete');
      },
      { quotaBytes: QUOTA },
    ),
};

export const survives: ConformancePromise<PageStoreHarness> = {
  name: 'has its pages again when it is opened anew',
  flag: 'persistent',
  run: async (harness) => {
    const { reopen } = harness;
    if (reopen === undefined) throw new BrokenPromiseError('a store that says it is persistent needs `reopen` in its harness');
    let store = await harness.create();
    try {
      const [a, b] = keysOf(2);
      await store.put([{ ...a, bytes: pageOf(1) }]);
      await store.put([{ ...b, bytes: pageOf(2) }]);
      await store.delete([b]);
      store = await reopen(store);
      ensureEqual(await store.get([a]), [pageOf(1)], 'get after opening anew');
      ensureEqual(await store.get([b]), [null], 'get of a deleted page after opening anew');
      ensureEqual(await store.put([{ ...a, bytes: pageOf(1) }]), [{ status: 'exists' }], 'put of a page from before');
    } finally {
      await destroyStore(harness, store);
    }
  },
};

export const shares: ConformancePromise<PageStoreHarness> = {
  name: 'sees what another store on the same pages stored and deleted',
  flag: 'shared',
  run: (harness) =>
    withStore(harness, async (store) => {
      if (harness.another === undefined)
        throw new BrokenPromiseError('a store that says it is shared needs `another` in its harness');
      const other = await harness.another(store);
      try {
        const [a, b] = keysOf(2);
        await store.put([{ ...a, bytes: pageOf(1) }]);
        await other.put([{ ...b, bytes: pageOf(2) }]);
        ensureEqual(await other.get([a]), [pageOf(1)], 'get of what the first stored');
        ensureEqual(await store.get([b]), [pageOf(2)], 'get of what the second stored');
        ensureEqual(await other.put([{ ...a, bytes: pageOf(3) }]), [{ status: 'exists' }], 'put of what the first stored');
        await other.delete([a]);
        ensureEqual(await store.get([a]), [null], 'get of what the second deleted');
      } finally {
        await other.close();
      }
    }),
};

async function listed(store: PageStore): Promise<string[]> {
  if (store.list === undefined) throw new BrokenPromiseError('supports.list is true, and there is no list');
  const found: string[] = [];
  let cursor: string | undefined;
  for (let pieces = 0; pieces < 1000; pieces++) {
    const piece = await store.list({ cursor });
    ensure(piece.keys.length <= store.limits.maxBatch, `a piece of the list has ${piece.keys.length} keys`);
    found.push(...piece.keys.map(({ key }) => key));
    if (piece.cursor === null) return found;
    cursor = piece.cursor;
  }
  throw new BrokenPromiseError('the list has no end');
}
