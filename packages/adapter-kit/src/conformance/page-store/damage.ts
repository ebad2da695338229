import type { PageKey } from '../../page-store/page-key.ts';
import { ensureEqual } from '../assertions.ts';
import type { ConformancePromise } from '../suite.ts';
import { keysOf, type PageStoreHarness, pageOf, withStore } from './harness.ts';

type Tamper = NonNullable<PageStoreHarness['tamper']>;

/** Ways in which a medium fails. */
const DAMAGES: Readonly<Record<string, (stored: Uint8Array) => Uint8Array>> = {
  'a bit flipped at the beginning': (stored) => flipped(stored, 0),
  'a bit flipped in the middle': (stored) => flipped(stored, stored.length >> 1),
  'a bit flipped at the end': (stored) => flipped(stored, stored.length - 1),
  'the last byte missing': (stored) => stored.slice(0, -1),
  'only the first half written': (stored) => stored.slice(0, stored.length >> 1),
  'a byte too many': (stored) => Uint8Array.of(...stored, 0),
  'no bytes at all': () => new Uint8Array(0),
  'zeros all over': (stored) => new Uint8Array(stored.length),
};

export const damage: ConformancePromise<PageStoreHarness> = {
  name: 'answers null for a damaged page, never other bytes',
  needs: 'tamper',
  run: (harness) =>
    withStore(harness, async (store) => {
      const tamper = harness.tamper as Tamper;
      const intact = { key: 'intact' };
      await store.put([{ ...intact, bytes: pageOf(77) }]);
      for (const [i, [what, change]] of Object.entries(DAMAGES).entries()) {
        const key = { key: `damaged-${i}` };
        await store.put([{ ...key, bytes: pageOf(i + 1) }]);
        await tamper(store, key, (stored) => stored.slice());
        ensureEqual(await store.get([key]), [pageOf(i + 1)], 'get of a page that was written over with itself');
        await tamper(store, key, change);
        const both = store.limits.maxBatch > 1 ? await store.get([key, intact]) : [...(await store.get([key])), pageOf(77)];
        ensureEqual(both, [null, pageOf(77)], `get of a page with ${what}, and of one without`);
      }
    }),
};

export const swapped: ConformancePromise<PageStoreHarness> = {
  name: 'answers null for a page that lies under the key of another',
  needs: 'tamper',
  run: (harness) =>
    withStore(harness, async (store) => {
      const tamper = harness.tamper as Tamper;
      const [a, b] = keysOf(2);
      await store.put([{ ...a, bytes: pageOf(1) }]);
      await store.put([{ ...b, bytes: pageOf(2) }]);
      const ofA = await storedBytes(tamper, store, a);
      await tamper(store, b, () => ofA);
      ensureEqual(await store.get([b]), [null], 'get of a page with the bytes of another');
      ensureEqual(await store.get([a]), [pageOf(1)], 'get of the other');
    }),
};

export const repaired: ConformancePromise<PageStoreHarness> = {
  name: 'takes a page anew once it was found damaged, and counts it',
  needs: 'tamper',
  run: (harness) =>
    withStore(harness, async (store) => {
      const tamper = harness.tamper as Tamper;
      const [key] = keysOf(1);
      await store.put([{ ...key, bytes: pageOf(1) }]);
      await tamper(store, key, (stored) => flipped(stored, stored.length - 1));
      ensureEqual(await store.get([key]), [null], 'get of a damaged page');
      ensureEqual(store.statistics().damaged, 1, 'statistics().damaged');
      ensureEqual(await store.put([{ ...key, bytes: pageOf(1) }]), [{ status: 'stored' }], 'put over a damaged page');
      ensureEqual(await store.get([key]), [pageOf(1)], 'get of what was stored anew');
    }),
};

async function storedBytes(tamper: Tamper, store: Parameters<Tamper>[0], key: PageKey): Promise<Uint8Array> {
  let bytes = new Uint8Array(0);
  await tamper(store, key, (stored) => {
    bytes = stored.slice();
    return bytes;
  });
  return bytes;
}

function flipped(stored: Uint8Array, at: number): Uint8Array {
  const bytes = stored.slice();
  bytes[at] ^= 4;
  return bytes;
}
