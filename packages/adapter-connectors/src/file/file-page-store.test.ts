import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PageStore } from '@bufferwise/adapter-kit';
import { describePageStore } from '@bufferwise/adapter-kit/conformance/page-store';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { FilePageStore, type FilePageStoreOptions } from './file-page-store.ts';
import { PageFolder } from './page-folder.ts';

/** What the file system says next, by function. */
const faults = vi.hoisted(() => new Map<string, string>());
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  const faulty =
    (name: 'open' | 'rename' | 'mkdir') =>
    (...args: unknown[]) => {
      const code = faults.get(name);
      if (code !== undefined) return Promise.reject(Object.assign(new Error(code), { code }));
      return (real[name] as (...args: unknown[]) => Promise<unknown>)(...args);
    };
  return { ...real, open: faulty('open'), rename: faulty('rename'), mkdir: faulty('mkdir') };
});

const outer = mkdtempSync(join(tmpdir(), 'file-page-store-'));
afterAll(() => rmSync(outer, { recursive: true, force: true }));

let count = 0;
const freshFolder = () => join(outer, `store-${count++}`);
const pathOf = (folder: string, key: string) => new PageFolder(folder, 'never').pathOf(key);
const page = (seed: number, length = 100) => Uint8Array.from({ length }, (_, i) => seed * 7 + i);

const folders = new WeakMap<PageStore, string>();
const open = async (folder: string, options?: FilePageStoreOptions) => {
  const store = await FilePageStore.open(folder, options);
  folders.set(store, folder);
  return store;
};

for (const fsync of ['never', 'file-and-folder'] as const) {
  describePageStore(`files, fsync ${fsync},`, {
    create: ({ quotaBytes } = {}) => open(freshFolder(), { quotaBytes, fsync }),
    tamper(store, { key }, change) {
      const path = pathOf(folders.get(store) as string, key);
      if (existsSync(path)) writeFileSync(path, change(readFileSync(path)));
    },
    async reopen(store) {
      await store.close();
      return open(folders.get(store) as string);
    },
  });
}

describe('a store in files', () => {
  test('is refused a second time, in the same process and in another, until the first is closed', async () => {
    const folder = freshFolder();
    const store = await open(folder);
    await expect(open(folder)).rejects.toMatchObject({ code: 'store-locked' });
    await store.close();
    const next = await open(folder);
    await next.close();
    expect(readdirSync(folder).filter((name) => name.startsWith('lock-'))).toEqual(['lock-2']);
  });

  test('takes over from a process that has ended, and not from one on another machine', async () => {
    const folder = freshFolder();
    mkdirSync(folder);
    const pid = Number(execFileSync(process.execPath, ['-p', 'process.pid'], { encoding: 'utf8' }));
    const { hostname } = await import('node:os');
    writeFileSync(join(folder, 'lock-7'), JSON.stringify({ host: hostname(), pid, birth: '' }));
    await (await open(folder)).close();
    expect(existsSync(join(folder, 'lock-7'))).toBe(false);
    writeFileSync(join(folder, 'lock-9'), JSON.stringify({ host: 'elsewhere.example', pid, birth: '' }));
    await expect(open(folder)).rejects.toMatchObject({
      code: 'store-locked',
      message: expect.stringContaining('elsewhere.example'),
    });
  });

  test('takes over from an earlier process of the same number', async () => {
    const folder = freshFolder();
    mkdirSync(folder);
    const { hostname } = await import('node:os');
    writeFileSync(join(folder, 'lock-1'), JSON.stringify({ host: hostname(), pid: process.pid, birth: 'another boot 1' }));
    await (await open(folder)).close();
  });

  test('of many that are opened at once lets one win', async () => {
    const folder = freshFolder();
    mkdirSync(folder);
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => open(folder)));
    const open1 = results.filter(({ status }) => status === 'fulfilled');
    expect(open1).toHaveLength(1);
    await (open1[0] as PromiseFulfilledResult<FilePageStore>).value.close();
  });

  test('after a crash keeps the newest pages, removes what was unfinished, and leaves foreign files alone', async () => {
    const folder = freshFolder();
    const store = await open(folder);
    for (let i = 0; i < 10; i++) await store.put([{ key: `page-${i}`, bytes: page(i) }]);
    await store.close();
    const root = join(folder, 'pages-1');
    for (const name of ['a', 'b', 'c']) writeFileSync(join(root, 'unfinished', name), page(1, 50));
    const foreign = ['pages-9/00/p-page-0.page', 'pages-1/00/notes.txt', 'photos/cat.jpg'].map((path) => join(folder, path));
    for (const path of foreign) {
      mkdirSync(join(path, '..'), { recursive: true });
      writeFileSync(path, 'foreign');
    }
    const again = await open(folder, { quotaBytes: 8 * 116 });
    const keys = Array.from({ length: 10 }, (_, i) => ({ key: `page-${i}` }));
    expect(await again.has(keys)).toEqual([false, false, ...Array.from({ length: 8 }, () => true)]);
    expect(await again.get([keys[9]])).toEqual([page(9)]);
    expect(again.statistics()).toMatchObject({ usedBytes: 8 * 116, quotaBytes: 8 * 116, stored: 0 });
    expect(readdirSync(join(root, 'unfinished'))).toEqual([]);
    for (const path of foreign) expect(readFileSync(path, 'utf8')).toBe('foreign');
    expect(existsSync(pathOf(folder, 'page-0'))).toBe(false);
    await again.close();
  });

  test('lets the least recently used page go, also when the use was before a restart', async () => {
    const folder = freshFolder();
    const quotaBytes = 3 * 116;
    const store = await open(folder, { quotaBytes });
    for (const key of ['a', 'b', 'c']) await store.put([{ key, bytes: page(1) }]);
    await store.get([{ key: 'a' }]);
    await store.close();
    const again = await open(folder, { quotaBytes });
    expect(await again.put([{ key: 'd', bytes: page(1) }])).toEqual([{ status: 'stored' }]);
    expect(await again.has(['a', 'b', 'c', 'd'].map((key) => ({ key })))).toEqual([true, false, true, true]);
    await again.close();
  });

  test('notes the use of a page on the disk now and then, so that a crash loses little of the order', async () => {
    const folder = freshFolder();
    let now = 1_000_000;
    const store = await open(folder, { now: () => now });
    await store.put([{ key: 'a', bytes: page(1) }]);
    now += 30_000;
    await store.get([{ key: 'a' }]);
    const noted = async () => (await new PageFolder(folder, 'never').scan())[0].usedAt;
    expect(await noted()).toBe(1_000_000);
    now += 30_000;
    await store.get([{ key: 'a' }]);
    expect(await noted()).toBe(1_060_000);
    await store.close();
  });

  test('keeps to its quota when many pages are put at once', async () => {
    const store = await open(freshFolder(), { quotaBytes: 5 * 116 });
    const outcomes = await store.put(Array.from({ length: 20 }, (_, i) => ({ key: `page-${i}`, bytes: page(i) })));
    expect(outcomes.filter(({ status }) => status === 'stored').length).toBeGreaterThanOrEqual(5);
    expect(store.statistics().usedBytes).toBeLessThanOrEqual(5 * 116);
    const { keys } = await store.list();
    expect(await store.get(keys)).toEqual(keys.map(({ key }) => page(Number(key.slice(5)))));
    await store.close();
  });

  test.each(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES'])(
    'refuses a page when the disk says %s, and has room again later',
    async (code) => {
      const folder = freshFolder();
      const store = await open(folder, { quotaBytes: 300 });
      for (const call of ['open', 'rename']) {
        faults.set(call, code);
        expect(await store.put([{ key: 'a', bytes: page(1) }])).toEqual([{ status: 'refused', reason: 'full' }]);
        faults.clear();
      }
      expect(store.statistics()).toMatchObject({ refused: 2, usedBytes: 0 });
      expect(await store.put([{ key: 'a', bytes: page(1) }])).toEqual([{ status: 'stored' }]);
      expect(readdirSync(join(folder, 'pages-1', 'unfinished'))).toEqual([]);
      await store.close();
    },
  );

  test('passes on what else the file system says, and goes on', async () => {
    const store = await open(freshFolder());
    faults.set('open', 'EIO');
    await expect(store.put([{ key: 'a', bytes: page(1) }])).rejects.toMatchObject({ code: 'EIO' });
    faults.clear();
    expect(await store.put([{ key: 'a', bytes: page(1) }])).toEqual([{ status: 'stored' }]);
    faults.set('open', 'EIO');
    expect(await store.get([{ key: 'a' }])).toEqual([null]);
    faults.clear();
    await store.close();
  });

  test('gives pages out from a disk that can only be read, and takes none', async () => {
    const folder = freshFolder();
    const store = await open(folder);
    await store.put([{ key: 'a', bytes: page(1) }]);
    await store.close();
    faults.set('mkdir', 'EROFS');
    const frozen = await open(folder);
    faults.clear();
    expect(frozen.isWritable).toBe(false);
    expect(await frozen.get([{ key: 'a' }])).toEqual([page(1)]);
    expect(await frozen.put([{ key: 'b', bytes: page(1) }])).toEqual([{ status: 'refused', reason: 'full' }]);
    await frozen.close();
    expect((await new PageFolder(folder, 'never').scan()).map(({ key }) => key)).toEqual(['a']);
  });

  test.each(['../../escaped', '/etc/escaped', 'a/b', 'a\\b', '..', '', 'A', 'a\0b', 'k'.repeat(201)])(
    'takes no key like %j',
    async (key) => {
      const folder = freshFolder();
      const store = await open(folder);
      await expect(store.put([{ key, bytes: page(1) }])).rejects.toMatchObject({ code: 'invalid-page-key' });
      expect(await store.get([{ key }])).toEqual([null]);
      expect(await store.delete([{ key }])).toEqual([false]);
      expect(await new PageFolder(folder, 'never').scan()).toEqual([]);
      await store.close();
    },
  );

  test('misses a page whose file somebody removed, and takes it anew', async () => {
    const folder = freshFolder();
    const store = await open(folder);
    await store.put([{ key: 'a', bytes: page(1) }]);
    rmSync(pathOf(folder, 'a'));
    expect(await store.get([{ key: 'a' }])).toEqual([null]);
    expect(await store.put([{ key: 'a', bytes: page(2) }])).toEqual([{ status: 'stored' }]);
    expect(await store.get([{ key: 'a' }])).toEqual([page(2)]);
    await store.close();
  });

  test('takes pages with the time of a broken clock for what they are', async () => {
    const folder = freshFolder();
    const store = await open(folder);
    for (const key of ['a', 'b']) await store.put([{ key, bytes: page(1) }]);
    await store.close();
    utimesSync(pathOf(folder, 'a'), 4_000_000_000, 4_000_000_000);
    const again = await open(folder, { quotaBytes: 2 * 116 });
    await again.get([{ key: 'b' }]);
    await again.put([{ key: 'c', bytes: page(1) }]);
    expect(await again.has(['a', 'b', 'c'].map((key) => ({ key })))).toEqual([false, true, true]);
    await again.close();
  });

  test.each([0, -1, Number.NaN])('takes no quota of %d bytes', async (quotaBytes) => {
    await expect(open(freshFolder(), { quotaBytes })).rejects.toMatchObject({ code: 'invalid-option' });
  });

  test('says why a folder cannot be used', async () => {
    await expect(open(join(process.execPath, 'inside'))).rejects.toMatchObject({ code: 'ENOTDIR' });
  });
});
