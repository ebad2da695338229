import type { PageStore } from '../../page-store/page-store.ts';
import { lifecyclePromises } from '../lifecycle-trait.ts';
import type { Suite } from '../suite.ts';
import { counts, isolated, limits, order, overlap } from './batches.ts';
import { damage, repaired, swapped } from './damage.ts';
import { destroyStore, keysOf, type PageStoreHarness, pageOf } from './harness.ts';
import { expires, lists, quota, shares, survives } from './optional-parts.ts';
import { deletes, firstWins, missing, names, ownCopy, roundTrip } from './round-trip.ts';

/** What every page store does. */
export const pageStoreSuite: Suite<PageStoreHarness> = {
  kind: 'page store',
  promises: [
    roundTrip,
    missing,
    firstWins,
    ownCopy,
    deletes,
    names,
    limits,
    order,
    overlap,
    isolated,
    counts,
    damage,
    swapped,
    repaired,
    lists,
    expires,
    quota,
    survives,
    shares,
    ...lifecyclePromises<PageStoreHarness, PageStore>({
      async open(harness) {
        const store = await harness.create();
        return { plugin: store, end: () => destroyStore(harness, store) };
      },
      calls: {
        has: (store, options) => store.has(keysOf(1), options),
        get: (store, options) => store.get(keysOf(1), options),
        put: (store, options) => store.put([{ key: 'late', bytes: pageOf(1) }], options),
        delete: (store, options) => store.delete(keysOf(1), options),
        list: (store, options) => store.list?.(options),
      },
    }),
  ],
  async supports(harness) {
    const store = await harness.create();
    await destroyStore(harness, store);
    return store.supports;
  },
};
