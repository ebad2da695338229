import { MemoryPageStore, MemoryPages } from '../../memory/memory-page-store.ts';
import { checkedPageStore } from '../../page-store/checked-page-store.ts';
import type { PageStore } from '../../page-store/page-store.ts';
import { describePageStore, type PageStoreHarness } from './index.ts';

/** Memory, as it is and through a wrapper. */
function harness(wrap: (store: PageStore) => PageStore): PageStoreHarness {
  const media = new WeakMap<PageStore, { pages: MemoryPages; clock: { now: number } }>();
  const open = (medium: { pages: MemoryPages; clock: { now: number } }, quotaBytes?: number) => {
    const store = wrap(new MemoryPageStore({ pages: medium.pages, now: () => medium.clock.now, quotaBytes }));
    media.set(store, medium);
    return store;
  };
  const mediumOf = (store: PageStore) => media.get(store) as { pages: MemoryPages; clock: { now: number } };
  return {
    create: ({ quotaBytes } = {}) => open({ pages: new MemoryPages(), clock: { now: 1 } }, quotaBytes),
    tamper(store, { key }, change) {
      const page = mediumOf(store).pages.byKey.get(key);
      if (page) page.sealed = change(page.sealed);
    },
    async reopen(store) {
      await store.close();
      return open(mediumOf(store));
    },
    another: (store) => open(mediumOf(store)),
    elapse(store, ms) {
      mediumOf(store).clock.now += ms;
    },
  };
}

describePageStore(
  'memory',
  harness((store) => store),
);
describePageStore('memory, checked,', harness(checkedPageStore));
