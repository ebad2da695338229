import type { PageStore } from '@bufferwise/adapter-kit';
import { describePageStore } from '@bufferwise/adapter-kit/conformance/page-store';
import { MemoryPageStore, MemoryPages } from '@bufferwise/adapter-kit/memory';
import { describe, expect, test } from 'vitest';
import { turns, UnreliableStore } from '../../test/support/unreliable-store.ts';
import { type ComposedStore, composedStore } from './composed-store.ts';

for (const write of ['through', 'back'] as const) {
  const media = new WeakMap<PageStore, readonly [MemoryPages, MemoryPages]>();
  const open = (pages: readonly [MemoryPages, MemoryPages], quotaBytes?: number) => {
    const half = quotaBytes && quotaBytes / 2;
    const stores = pages.map((each) => new MemoryPageStore({ pages: each, quotaBytes: half }));
    const store = composedStore(stores, { write });
    media.set(store, pages);
    return store;
  };
  const pagesOf = (store: PageStore) => media.get(store) as readonly [MemoryPages, MemoryPages];
  describePageStore(`two stores, written ${write},`, {
    create: ({ quotaBytes } = {}) => open([new MemoryPages(), new MemoryPages()], quotaBytes),
    async tamper(store, { key }, change) {
      // The near one has lost the page: what the far one has is what counts.
      await (store as ComposedStore).flushed();
      const [near, far] = pagesOf(store);
      near.usedBytes -= near.byKey.get(key)?.sealed.length ?? 0;
      near.byKey.delete(key);
      const page = far.byKey.get(key);
      if (page) page.sealed = change(page.sealed);
    },
    async reopen(store) {
      await store.close();
      return open(pagesOf(store));
    },
    another: (store) => open(pagesOf(store)),
  });
}

const page = (seed: number) => Uint8Array.from({ length: 32 }, (_, i) => seed + i);
const a = { key: 'a' };
const down = () => {
  throw new Error('down');
};

describe('several stores as one', () => {
  test('look near before far, and bring near what was found far', async () => {
    const [near, far] = [new UnreliableStore(), new UnreliableStore()];
    const store = composedStore([near, far]);
    await far.put([{ ...a, bytes: page(1) }]);
    expect(await store.get([a, { key: 'b' }])).toEqual([page(1), null]);
    await store.flushed();
    far.before = down;
    expect(await store.get([a])).toEqual([page(1)]);
    expect(store.statistics()).toMatchObject({ hits: 2, misses: 1, bytesRead: 64 });
  });

  test('serve a page that one has damaged and another has whole', async () => {
    const pages = new MemoryPages();
    const store = composedStore([new MemoryPageStore({ pages }), new MemoryPageStore()]);
    await store.put([{ ...a, bytes: page(1) }]);
    (pages.byKey.get('a') as { sealed: Uint8Array }).sealed[20] ^= 1;
    expect(await store.get([a])).toEqual([page(1)]);
    await store.flushed();
    expect(pages.byKey.size).toBe(1);
  });

  test.each(['through', 'back'] as const)('go on when one of them is down, written %s', async (write) => {
    for (const which of [0, 1]) {
      const stores = [new UnreliableStore(), new UnreliableStore()];
      const store = composedStore(stores, { write });
      stores[which].before = down;
      expect(await store.put([{ ...a, bytes: page(1) }])).toEqual([{ status: 'stored' }]);
      await store.flushed();
      expect(await store.has([a])).toEqual([true]);
      expect(await store.get([a])).toEqual([page(1)]);
      await expect(store.delete([a])).rejects.toThrow('down');
      expect(store.faults()[which]).toMatchObject({
        store: 'memory page store',
        lastError: expect.objectContaining({ message: 'down' }),
      });
      expect(store.faults()[1 - which].faults).toBe(0);
      stores[which].before = () => {};
      expect(await store.get([a])).toEqual([null]);
      await store.close();
    }
  });

  test('reject when all of them are down', async () => {
    const stores = [new UnreliableStore(), new UnreliableStore()];
    for (const each of stores) each.before = down;
    for (const write of ['through', 'back'] as const) {
      const store = composedStore(stores, { write });
      await expect(store.get([a])).rejects.toThrow('down');
      await expect(store.put([{ ...a, bytes: page(1) }])).rejects.toThrow('down');
    }
  });

  test('written through, say what the far one says; written back, what the near one says', async () => {
    const full = new UnreliableStore();
    full.isFull = true;
    const entry = { ...a, bytes: page(1) };
    const refused = { status: 'refused', reason: 'full' };
    const stored = { status: 'stored' };
    expect(await composedStore([new UnreliableStore(), full]).put([entry])).toEqual([refused]);
    expect(await composedStore([full, new UnreliableStore()]).put([entry])).toEqual([stored]);
    expect(await composedStore([new UnreliableStore(), full], { write: 'back' }).put([entry])).toEqual([stored]);
    expect(await composedStore([full, new UnreliableStore()], { write: 'back' }).put([entry])).toEqual([stored]);
  });

  test('written back, wait for no far store, and have it all there when they close', async () => {
    const pages = new MemoryPages();
    const far = new UnreliableStore(pages);
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    far.before = () => gate;
    const store = composedStore([new UnreliableStore(), far], { write: 'back' });
    const bytes = page(1);
    expect(await store.put([{ ...a, bytes }])).toEqual([{ status: 'stored' }]);
    bytes.fill(0);
    expect(pages.byKey.size).toBe(0);
    const closing = store.close();
    open();
    await closing;
    expect(await new MemoryPageStore({ pages }).get([a])).toEqual([page(1)]);
  });

  test('written back, write through what is beyond their bytes in the background', async () => {
    const far = new MemoryPageStore();
    const store = composedStore([new MemoryPageStore(), far], { write: 'back', backgroundBytes: 31 });
    await store.put([{ ...a, bytes: page(1) }]);
    expect(await far.has([a])).toEqual([true]);
  });

  test('forget a page that is just being brought near', async () => {
    const [near, far] = [new UnreliableStore(), new UnreliableStore()];
    const store = composedStore([near, far]);
    await far.put([{ ...a, bytes: page(1) }]);
    near.before = (call) => (call === 'put' ? turns() : undefined);
    await store.get([a]);
    await store.delete([a]);
    await store.flushed();
    expect(await store.get([a])).toEqual([null]);
  });

  test('list each page once', async () => {
    const [near, far] = [new MemoryPageStore(), new MemoryPageStore()];
    await near.put([{ ...a, bytes: page(1) }]);
    await far.put([
      { ...a, bytes: page(1) },
      { key: 'b', bytes: page(2) },
    ]);
    const store = composedStore([near, far]);
    const first = await store.list?.();
    const second = await store.list?.({ cursor: first?.cursor ?? '' });
    expect([first?.keys.length, second?.keys, second?.cursor]).toEqual([1, [{ key: 'b', affinity: undefined }], null]);
  });

  test('are at least one', () => {
    expect(() => composedStore([])).toThrowError(expect.objectContaining({ code: 'invalid-option' }));
  });
});
