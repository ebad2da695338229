import type { PageStore } from '@bufferwise/adapter-kit';
import { deleteDB } from 'idb';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { cdp } from 'vitest/browser';
import { IndexedDbPageStore } from '../../src/indexeddb/indexeddb-page-store.ts';
import { OpfsPageStore } from '../../src/opfs/opfs-page-store.ts';
import { freshDirectory, pagesWorker, removeDirectory } from '../opfs/stores.ts';
import { isPageOf, pageOf } from '../support/seeded-pages.ts';

const STORED = { status: 'stored' };
const FULL = { status: 'refused', reason: 'full' };
const PAGE_BYTES = 200_000;
const ROOM = 3_000_000;

/** What the origin uses, once what others have removed is no longer counted. */
async function settledUsage(): Promise<number> {
  let last = -1;
  const isSettled = async () => {
    const { usage = 0 } = await navigator.storage.estimate();
    const isSame = usage === last;
    last = usage;
    return isSame;
  };
  await vi.waitUntil(isSettled, { interval: 200, timeout: 30_000 });
  return last;
}

/** What this browser gives to the origin, in bytes beyond what it uses already; without: what it would give by itself. */
async function setRoom(bytes?: number): Promise<void> {
  const devtools = cdp() as unknown as { send(method: string, parameters: object): Promise<void> };
  const quotaSize = bytes === undefined ? undefined : (await settledUsage()) + bytes;
  await devtools.send('Storage.overrideQuotaForOrigin', { origin: location.origin, quotaSize });
}
afterEach(() => setRoom());

const entry = (i: number) => ({ key: `page-${i}`, bytes: pageOf(`page-${i}`, PAGE_BYTES) });
const range = (count: number) => Array.from({ length: count }, (_, i) => i);

/** The numbers of pages that are there, each of which must be whole. */
async function there(store: PageStore, count: number): Promise<number[]> {
  const pages = await store.get(range(count).map((i) => ({ key: `page-${i}` })));
  return range(count).filter((i) => {
    if (pages[i] !== null) expect(isPageOf(`page-${i}`, pages[i], PAGE_BYTES), `page ${i}`).toBe(true);
    return pages[i] !== null;
  });
}

describe('in a browser with less room than the quota', () => {
  test('files take new pages in place of old ones, and what does not fit is refused', async () => {
    await setRoom(ROOM);
    const directory = freshDirectory();
    const store = await OpfsPageStore.open({ worker: pagesWorker, directory });
    for (const i of range(50)) expect(await store.put([entry(i)])).toEqual([STORED]);
    const kept = await there(store, 50);
    expect(kept.slice(-8)).toEqual([42, 43, 44, 45, 46, 47, 48, 49]);
    expect(kept).not.toContain(0);
    expect(store.statistics().quotaBytes).toBeLessThanOrEqual(ROOM);
    const huge = { key: 'huge', bytes: new Uint8Array(ROOM) };
    expect((await store.put([huge]))[0].status).toBe('refused');

    // When nothing at all can be written, pages that are there stay, however often others are tried.
    await setRoom(-ROOM);
    for (const i of range(10)) expect(await store.put([entry(100 + i)])).toEqual([FULL]);
    expect((await there(store, 50)).length).toBeGreaterThan(kept.length / 2);
    await setRoom(ROOM);
    expect(await store.put([entry(100)])).toEqual([STORED]);
    await store.close();
    await removeDirectory(directory);
  });

  test('a database refuses what it cannot take, and takes pages when there is room again', async () => {
    await setRoom(ROOM);
    const database = freshDirectory();
    const store = await IndexedDbPageStore.open({ database });
    for (const i of range(8)) expect(await store.put([entry(i)])).toEqual([STORED]);
    let tries = 0;
    // The browser finds out in its own time how much was taken, and how much of what others took is gone.
    const isFull = async () => {
      await setRoom(0);
      expect(await store.put([entry(100 + tries++)])).toEqual([FULL]);
    };
    await vi.waitFor(isFull, 30_000);
    expect(store.statistics()).toMatchObject({ stored: 8 + tries - 1, refused: 1, damaged: 0 });
    // Old pages have made room, a part of them; the others are given out.
    expect((await there(store, 100 + tries)).length).toBeGreaterThan(2);
    await setRoom();
    await vi.waitFor(async () => expect(await store.put([entry(50)])).toEqual([STORED]), 30_000);
    await store.close();
    await deleteDB(database);
  });
});
