import { describePageStore } from '@bufferwise/adapter-kit/conformance/page-store';
import { MemoryPageStore, MemoryPages } from '@bufferwise/adapter-kit/memory';
import { describe, expect, test } from 'vitest';
import { encryptedStore } from './encrypted-store.ts';

const KEY = Uint8Array.from({ length: 32 }, (_, i) => i);
const OTHER_KEY = Uint8Array.from({ length: 32 }, (_, i) => i + 1);

const media = new WeakMap<object, MemoryPages>();
function open(pages: MemoryPages, quotaBytes?: number) {
  const store = encryptedStore(new MemoryPageStore({ pages, quotaBytes }), { key: KEY });
  media.set(store, pages);
  return store;
}

/** The name on the medium that a page of one name has. */
async function hiddenName(name: string, affinity?: string) {
  const pages = new MemoryPages();
  await open(pages).put([{ key: name, affinity, bytes: Uint8Array.of(1) }]);
  return [...pages.byKey.keys()][0];
}

describePageStore('encrypted memory page store', {
  create: ({ quotaBytes } = {}) => open(new MemoryPages(), quotaBytes),
  async tamper(store, { key }, change) {
    const page = media.get(store)?.byKey.get(await hiddenName(key));
    if (page) page.sealed = change(page.sealed);
  },
  async reopen(store) {
    await store.close();
    return open(media.get(store) as MemoryPages);
  },
  another: (store) => open(media.get(store) as MemoryPages),
});

const text = (bytes: Uint8Array) => new TextDecoder('latin1').decode(bytes);
const page = new TextEncoder().encode('what the user wrote to nobody else');
const secret = { key: 'a-name', affinity: 'text' };

describe('a medium that others have', () => {
  test('sees neither pages nor their names, and no two equal pages', async () => {
    const pages = new MemoryPages();
    const store = open(pages);
    await store.put([
      { ...secret, bytes: page },
      { key: 'another-name', affinity: 'text', bytes: page },
    ]);
    const seen = [...pages.byKey].map(([name, { sealed }]) => ({ name, bytes: text(sealed) }));
    for (const { name, bytes } of seen) {
      expect(name).toMatch(/^[0-9a-f]{64}$/);
      expect(bytes).not.toContain(text(page).slice(0, 8));
    }
    expect(seen[0].bytes.slice(30)).not.toBe(seen[1].bytes.slice(30));
    expect(await store.get([secret])).toEqual([page]);
  });

  test('cannot forge a page with what it knows, under any name', async () => {
    const pages = new MemoryPages();
    const store = open(pages);
    const inner = new MemoryPageStore({ pages });
    await store.put([{ ...secret, bytes: page }]);
    const name = await hiddenName('a-name');
    const [sealed] = await inner.get([{ key: name }]);
    // A page of one's own, a real one of another name, and a real one of another key, each sealed by the medium as it should be.
    const other = new MemoryPages();
    await encryptedStore(new MemoryPageStore({ pages: other }), { key: OTHER_KEY }).put([{ ...secret, bytes: page }]);
    const [[foreignName]] = other.byKey;
    const [foreign] = await new MemoryPageStore({ pages: other }).get([{ key: foreignName }]);
    for (const forged of [page, new Uint8Array(), foreign as Uint8Array]) {
      await inner.delete([{ key: name }]);
      await inner.put([{ key: name, bytes: forged }]);
      expect(await store.get([secret])).toEqual([null]);
      expect(await store.put([{ ...secret, bytes: page }])).toEqual([{ status: 'stored' }]);
    }
    const elsewhere = await hiddenName('b-name');
    await inner.put([{ key: elsewhere, bytes: sealed as Uint8Array }]);
    expect(await store.get([{ key: 'b-name' }, secret])).toEqual([null, page]);
    expect(store.statistics()).toMatchObject({ damaged: 4, hits: 1 });
  });

  test('shows one who has another key no page, and loses none to them', async () => {
    const pages = new MemoryPages();
    const stranger = encryptedStore(new MemoryPageStore({ pages }), { key: OTHER_KEY });
    const store = open(pages);
    await store.put([{ ...secret, bytes: page }]);
    expect(await stranger.has([secret])).toEqual([false]);
    expect(await stranger.get([secret])).toEqual([null]);
    expect(await stranger.delete([secret])).toEqual([false]);
    expect(await store.get([secret])).toEqual([page]);
  });

  test('that will not remove what does not open costs a miss', async () => {
    const pages = new MemoryPages();
    const inner = new MemoryPageStore({ pages });
    const stubborn = Object.create(inner, {
      delete: { value: () => Promise.reject(new Error('read-only')) },
      has: { value: inner.has.bind(inner) },
      get: { value: inner.get.bind(inner) },
      put: { value: inner.put.bind(inner) },
      limits: { value: inner.limits },
      supports: { value: inner.supports },
      statistics: { value: inner.statistics.bind(inner) },
    });
    const store = encryptedStore(stubborn, { key: KEY });
    await inner.put([{ key: await hiddenName('a-name'), bytes: page }]);
    expect(await store.get([secret])).toEqual([null]);
    expect(store.statistics()).toMatchObject({ damaged: 1 });
  });
});

test('the key is taken as it is now', async () => {
  const pages = new MemoryPages();
  const key = KEY.slice();
  const store = encryptedStore(new MemoryPageStore({ pages }), { key });
  key.fill(0);
  await store.put([{ ...secret, bytes: page }]);
  expect(await open(pages).get([secret])).toEqual([page]);
});

test.each([[new Uint8Array(15)], ['a string of more than sixteen letters' as never]])('a key that is none is refused', (key) => {
  expect(() => encryptedStore(new MemoryPageStore(), { key })).toThrow(
    expect.objectContaining({ code: 'invalid-option', message: expect.stringContaining('16 random bytes') }),
  );
});
