import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { SmallDisk } from '@bufferwise-internal/services';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FilePageStore } from '../src/file/file-page-store.ts';

const DISK_BYTES = 256 * 1024;
const PAGE_BYTES = 5000;
const FULL = { status: 'refused', reason: 'full' };
/** What one call may take on a busy machine: an error of a disk is an answer, and nothing is tried again and again. */
const CALL_MS = 5_000;
const pageOf = (i: number) => Uint8Array.from({ length: PAGE_BYTES }, (_, at) => i + at * 7);
const entry = (i: number) => ({ key: `page-${i}`, bytes: pageOf(i) });

async function inTime<T>(call: Promise<T>): Promise<T> {
  const began = performance.now();
  const answer = await call;
  expect(performance.now() - began).toBeLessThan(CALL_MS);
  return answer;
}

/** All that is there is right. @returns how many pages are */
async function expectSound(store: FilePageStore): Promise<number> {
  const { keys } = await store.list();
  const pages = await inTime(store.get(keys));
  for (const [i, { key }] of keys.entries())
    expect(Buffer.compare(pages[i] as Uint8Array, pageOf(Number(key.slice(5)))), key).toBe(0);
  return keys.length;
}

// Needs Linux and the right to mount; elsewhere what a disk says is played to the store in `file-page-store.test.ts`.
const canMount = SmallDisk.isPossible();
if (!canMount) console.info('Skipped: a disk of a given size needs Linux and the right to mount; run this as root.');
describe.runIf(canMount)('a real disk of 256 KiB', () => {
  let disk: SmallDisk;
  let folder: string;
  beforeEach(() => {
    disk = SmallDisk.mount(DISK_BYTES);
    folder = join(disk.folder, 'pages');
  });
  afterEach(() => disk.unmount());

  test('that runs full refuses pages, keeps all others whole, and goes on when there is room', async () => {
    const store = await FilePageStore.open(folder);
    let numStored = 0;
    for (let i = 0; i < 100; i += 10) {
      const outcomes = await inTime(store.put(Array.from({ length: 10 }, (_, j) => entry(i + j))));
      for (const outcome of outcomes) expect([{ status: 'stored' }, FULL]).toContainEqual(outcome);
      numStored += outcomes.filter(({ status }) => status === 'stored').length;
    }
    expect(numStored).toBeGreaterThan(10);
    expect(store.statistics()).toMatchObject({ stored: numStored, refused: 100 - numStored });
    expect(await expectSound(store)).toBe(numStored);
    expect(readdirSync(join(store.folder, 'unfinished'))).toEqual([]);
    const { keys } = await store.list();
    expect(await store.delete(keys.slice(0, 3))).toEqual([true, true, true]);
    expect(await store.put([entry(200)])).toEqual([{ status: 'stored' }]);
    expect(store.statistics().damaged).toBe(0);
    await store.close();
  });

  test('that somebody else filled keeps its quota, and the pages that are there', async () => {
    const store = await FilePageStore.open(folder, { quotaBytes: 20 * PAGE_BYTES });
    await store.put(Array.from({ length: 10 }, (_, i) => entry(i)));
    disk.fill();
    expect(await inTime(store.put([entry(50), entry(51)]))).toEqual([FULL, FULL]);
    expect(await expectSound(store)).toBe(10);
    disk.clear();
    expect(await store.put([entry(50)])).toEqual([{ status: 'stored' }]);
    await store.close();
  });

  test('that is full when a store is closed and opened gives its pages out, and takes some when there is room', async () => {
    const store = await FilePageStore.open(folder);
    await store.put(Array.from({ length: 10 }, (_, i) => entry(i)));
    disk.fill();
    await store.close();
    disk.fill();
    const full = await inTime(FilePageStore.open(folder));
    expect(full.isWritable).toBe(false);
    expect(await expectSound(full)).toBe(10);
    expect(await inTime(full.put([entry(50)]))).toEqual([FULL]);
    await full.close();
    disk.clear();
    const later = await FilePageStore.open(folder);
    expect(later.isWritable).toBe(true);
    expect(await later.put([entry(50)])).toEqual([{ status: 'stored' }]);
    expect(await expectSound(later)).toBe(11);
    await later.close();
  });

  test('that becomes read-only refuses pages and gives out those that it has, also to the next store', async () => {
    const store = await FilePageStore.open(folder, { quotaBytes: 10 * (PAGE_BYTES + 16) });
    await store.put(Array.from({ length: 10 }, (_, i) => entry(i)));
    disk.setReadOnly(true);
    // Pages that would have to go for others cannot go, either.
    expect(await inTime(store.put([entry(50), entry(51)]))).toEqual([FULL, FULL]);
    expect(await expectSound(store)).toBe(10);
    expect(store.statistics()).toMatchObject({ refused: 2, damaged: 0, stored: 10 });
    await store.close();
    const frozen = await FilePageStore.open(folder);
    expect(frozen.isWritable).toBe(false);
    expect(await expectSound(frozen)).toBe(10);
    expect(await inTime(frozen.put([entry(50)]))).toEqual([FULL]);
    await frozen.close();
    disk.setReadOnly(false);
    const later = await FilePageStore.open(folder);
    expect(await later.put([entry(50)])).toEqual([{ status: 'stored' }]);
    await later.close();
  });
});
