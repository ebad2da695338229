import { MemoryPageStore, type MemoryPageStoreOptions, MemoryPages } from '../../memory/memory-page-store.ts';
import type { PageEntry, PageStore } from '../../page-store/page-store.ts';
import { openSealedPage } from '../../page-store/sealed-page.ts';
import type { PageStoreHarness } from '../page-store/harness.ts';
import { pageStoreSuite } from '../page-store/suite.ts';
import { type Broken, testSuiteCatches } from './catches-rig.ts';

/** The methods of a store, so that some can be replaced. */
function methodsOf(store: MemoryPageStore): PageStore {
  return {
    specVersion: store.specVersion,
    name: store.name,
    supports: store.supports,
    limits: store.limits,
    has: (keys, options) => store.has(keys, options),
    get: (keys, options) => store.get(keys, options),
    put: (entries, options) => store.put(entries, options),
    delete: (keys, options) => store.delete(keys, options),
    list: (options) => store.list(options),
    statistics: () => store.statistics(),
    close: () => store.close(),
  };
}

type Fault = (store: PageStore, pages: MemoryPages) => Partial<PageStore>;

/** Keys that the store without borders gives to all others. */
const everywhere = new Set<string>();

interface Medium extends MemoryPageStoreOptions {
  pages: MemoryPages;
  clock: { now: number };
}

function withFault(fault: Fault): PageStoreHarness {
  const media = new WeakMap<PageStore, Medium>();
  const fresh = (): Medium => ({ pages: new MemoryPages(), clock: { now: 1 } });
  const open = (medium: Medium): PageStore => {
    const right = methodsOf(new MemoryPageStore({ ...medium, now: () => medium.clock.now }));
    const store = { ...right, ...fault(right, medium.pages) };
    media.set(store, medium);
    return store;
  };
  const mediumOf = (store: PageStore) => media.get(store) as Medium;
  return {
    patienceMs: 200,
    create: ({ quotaBytes } = {}) => open({ ...fresh(), quotaBytes }),
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

const unaligned = (bytes: Uint8Array | null) =>
  bytes?.length === 4095 ? bytes.map((byte, i) => (i === 4094 ? 0 : byte)) : bytes;
const affinityOnly = ({ key, affinity }: { key: string; affinity?: string }) => ({
  key: affinity === 'chain' ? 'chain' : key,
  affinity,
});

const broken: Broken<PageStoreHarness>[] = [
  {
    fault: 'loses the last byte of an odd size',
    breaks: 'gives back what was stored, byte by byte, whatever its size',
    harness: withFault((store) => ({ get: async (keys, options) => (await store.get(keys, options)).map(unaligned) })),
  },
  {
    fault: 'says that it deleted what was never there',
    breaks: 'has nothing that was never stored',
    harness: withFault((store) => ({
      async delete(keys, options) {
        const were = await store.delete(keys, options);
        return store.statistics().stored === 0 ? were.map(() => true) : were;
      },
    })),
  },
  {
    fault: 'lets the last writer win, and says that it did not',
    breaks: 'keeps the first page of a key, and says of a second one that it exists',
    harness: withFault((store) => ({
      async put(entries, options) {
        const outcomes = await store.put(entries, options);
        const again = entries.filter(
          ({ key, bytes }, i) => key === 'page-0' && outcomes[i].status === 'exists' && bytes.length === 64,
        );
        if (again.length > 0 && entries.length === 1 && (await store.has([{ key: 'page-1' }]))[0] === false) {
          await store.delete(again);
          await store.put(again, options);
        }
        return outcomes;
      },
    })),
  },
  {
    fault: 'gives out the bytes that it keeps',
    breaks: 'keeps its own copy: nobody else can change a page',
    harness: withFault((store, pages) => ({
      async get(keys, options) {
        const found = await store.get(keys, options);
        return found.map((bytes, i) => bytes && openSealedPage(keys[i].key, pages.byKey.get(keys[i].key)?.sealed ?? bytes));
      },
    })),
  },
  {
    fault: 'answers for a batch of deletes in its own order',
    breaks: 'forgets what is deleted, says what was there, and takes it anew',
    harness: withFault((store) => ({
      delete: async (keys, options) => [...(await store.delete(keys, options))].sort((a, b) => Number(b) - Number(a)),
    })),
  },
  {
    fault: 'takes the affinity for the name',
    breaks: 'tells all valid keys apart, with an affinity and without',
    harness: withFault((store) => ({
      get: (keys, options) => store.get(keys.map(affinityOnly), options),
      put: (entries: readonly PageEntry[], options) =>
        store.put(
          entries.map((entry) => ({ ...entry, ...affinityOnly(entry) })),
          options,
        ),
    })),
  },
  {
    fault: 'takes fewer pages at a time than it says',
    breaks: 'states how much it takes at a time, and takes it',
    harness: withFault((store) => ({
      put: async (entries, options) => {
        const outcomes = await store.put(entries.slice(0, 32), options);
        return entries.map((_, i) => outcomes[i] ?? { status: 'refused', reason: 'full' });
      },
    })),
  },
  {
    fault: 'answers get in the order of its keys',
    breaks: 'answers in the order of the question, one for each',
    harness: withFault((store) => ({
      get: (keys, options) => store.get(keys.length === 6 ? [...keys].sort((a, b) => a.key.localeCompare(b.key)) : keys, options),
    })),
  },
  {
    fault: 'looks before it writes, and lets others write in between',
    breaks: 'serves many calls at once, and of two writers of a key lets one win',
    harness: withFault((store) => {
      const writing = new Set<string>();
      return {
        async put(entries, options) {
          const raced = entries.map(({ key }) => writing.has(key));
          for (const { key } of entries) writing.add(key);
          try {
            const outcomes = await store.put(entries, options);
            return outcomes.map((outcome, i) => (raced[i] ? { status: 'stored' } : outcome));
          } finally {
            for (const { key } of entries) writing.delete(key);
          }
        },
      };
    }),
  },
  {
    fault: 'shares some of its pages with all others',
    breaks: 'has nothing of another store',
    harness: withFault((store) => ({
      has: async (keys, options) => (await store.has(keys, options)).map((there, i) => there || everywhere.has(keys[i].key)),
      put(entries, options) {
        for (const { key } of entries) if (key === 'foreign') everywhere.add(key);
        return store.put(entries, options);
      },
    })),
  },
  {
    fault: 'counts a page that exists as stored',
    breaks: 'counts what it gave out, did not have, and stored',
    harness: withFault((store) => {
      let again = 0;
      return {
        async put(entries, options) {
          const outcomes = await store.put(entries, options);
          again += outcomes.filter(({ status }) => status === 'exists').length;
          return outcomes;
        },
        statistics: () => ({ ...store.statistics(), stored: store.statistics().stored + again }),
      };
    }),
  },
  {
    fault: 'looks at the sum of nothing but the first half',
    breaks: 'answers null for a damaged page, never other bytes',
    harness: withFault((store, pages) => ({
      async get(keys, options) {
        const found = await store.get(keys, options);
        return found.map((bytes, i) =>
          bytes === null && keys[i].key === 'damaged-2' ? (pages.byKey.get('intact')?.sealed ?? null) : bytes,
        );
      },
    })),
  },
  {
    fault: 'leaves the key out of the sum',
    breaks: 'answers null for a page that lies under the key of another',
    harness: withFault((store, pages) => ({
      async get(keys, options) {
        const { damaged } = store.statistics();
        const sealed = keys.map(({ key }) => pages.byKey.get(key)?.sealed);
        const found = await store.get(keys, options);
        if (store.statistics().damaged === damaged) return found;
        return found.map((bytes, i) => bytes ?? (sealed[i] ? openSealedPage('page-0', sealed[i]) : null));
      },
    })),
  },
  {
    fault: 'does not count damage',
    breaks: 'takes a page anew once it was found damaged, and counts it',
    harness: withFault((store) => ({ statistics: () => ({ ...store.statistics(), damaged: 0 }) })),
  },
  {
    fault: 'lists only the first piece',
    breaks: 'lists exactly the pages that are there, piece by piece',
    harness: withFault((store) => ({
      list: async (options) => ({ keys: (await store.list?.(options))?.keys ?? [], cursor: null }),
    })),
  },
  {
    fault: 'forgets the time of a page',
    breaks: 'gives a page out until its time has come, and not after',
    harness: withFault((store) => ({
      put: (entries, options) =>
        store.put(
          entries.map(({ ttlMs: _, ...entry }) => entry),
          options,
        ),
    })),
  },
  {
    fault: 'says that there is no room for what never will be',
    breaks: 'takes up no more than its quota, and has what it said it stored last',
    harness: withFault((store) => ({
      put: async (entries, options) =>
        (await store.put(entries, options)).map((outcome) =>
          outcome.status === 'refused' ? { status: 'refused', reason: 'full' } : outcome,
        ),
    })),
  },
  {
    fault: 'loses its pages when it closes',
    breaks: 'has its pages again when it is opened anew',
    harness: withFault((store, pages) => ({
      async close() {
        await store.close();
        pages.byKey.clear();
      },
    })),
  },
  {
    fault: 'remembers what others have deleted',
    breaks: 'sees what another store on the same pages stored and deleted',
    harness: withFault((store) => {
      const cache = new Map<string, Uint8Array>();
      return {
        async get(keys, options) {
          const { damaged } = store.statistics();
          const found = await store.get(keys, options);
          if (store.statistics().damaged > damaged) return found;
          return found.map((bytes, i) => bytes ?? cache.get(keys[i].key)?.slice() ?? null);
        },
        async put(entries, options) {
          for (const { key, bytes, ttlMs } of entries) if (ttlMs === undefined) cache.set(key, bytes.slice());
          return store.put(entries, options);
        },
        async delete(keys, options) {
          for (const { key } of keys) cache.delete(key);
          return store.delete(keys, options);
        },
      };
    }),
  },
  {
    fault: 'looks at the signal when it is done',
    breaks: 'begins no call whose signal is aborted, and rejects with its reason',
    harness: withFault((store) => ({ has: (keys) => store.has(keys) })),
  },
  {
    fault: 'still answers has when it is closed',
    breaks: 'rejects every call after close',
    harness: withFault((store) => {
      let closed = false;
      return {
        has: async (keys, options) => {
          options?.signal?.throwIfAborted();
          return closed ? keys.map(() => false) : store.has(keys, options);
        },
        async close() {
          closed = true;
          await store.close();
        },
      };
    }),
  },
  {
    fault: 'leaves a call hanging when it closes',
    breaks: 'settles every call that is under way when it closes',
    harness: withFault((store) => {
      let closed = false;
      return {
        async put(entries, options) {
          const outcomes = await store.put(entries, options);
          if (closed) await new Promise(() => {});
          return outcomes;
        },
        async close() {
          closed = true;
          await store.close();
        },
      };
    }),
  },
  {
    fault: 'cannot be closed twice',
    breaks: 'may be closed again, during the first close and after it',
    harness: {
      ...withFault((store) => {
        let closed = false;
        return {
          async close() {
            if (closed) throw new Error('closed already');
            closed = true;
            await store.close();
          },
        };
      }),
      destroy: () => {},
    },
  },
];

testSuiteCatches(
  pageStoreSuite,
  withFault(() => ({})),
  broken,
);
