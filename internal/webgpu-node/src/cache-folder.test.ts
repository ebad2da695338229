import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { cacheFolder, ensureUnpacked } from './cache-folder.ts';
import type { TarFile } from './tar.ts';

let base: string;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'bufferwise-test-'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(base, { recursive: true, force: true });
});

const file = (path: string, content: string, executable = false): TarFile => ({
  path,
  executable,
  bytes: new TextEncoder().encode(content),
});

describe('the cache folder', () => {
  test('lies where the system keeps caches', async () => {
    vi.stubEnv('XDG_CACHE_HOME', base);
    expect(await cacheFolder()).toBe(join(base, 'bufferwise'));
  });

  test('lies in a private temporary folder where that cannot be written', async () => {
    await writeFile(join(base, 'no-folder'), '');
    vi.stubEnv('XDG_CACHE_HOME', join(base, 'no-folder'));
    vi.stubEnv('TMPDIR', base);
    const folder = await cacheFolder();
    expect(folder.startsWith(join(base, 'bufferwise-'))).toBe(true);
    expect((await stat(folder)).mode & 0o077).toBe(0);
  });

  test('is never one that somebody else could fill', async () => {
    vi.stubEnv('XDG_CACHE_HOME', '/dev/null');
    vi.stubEnv('TMPDIR', base);
    const open = join(base, `bufferwise-${process.getuid?.()}`);
    await mkdir(open, { mode: 0o700 });
    expect(await cacheFolder()).toBe(open);
    await rm(open, { recursive: true });
    await writeFile(open, '');
    const other = await cacheFolder();
    expect(other).not.toBe(open);
    expect(other.startsWith(base)).toBe(true);
  });
});

describe('unpacking', () => {
  test('makes the folder once, with its modes, and leaves nothing beside it', async () => {
    const folder = join(base, 'unpacked');
    const files = vi.fn(async () => [file('lib/a', 'A', true), file('b', 'B')]);
    await ensureUnpacked(folder, ['lib/a', 'b'], files);
    await ensureUnpacked(folder, ['lib/a', 'b'], files);
    expect(files).toHaveBeenCalledTimes(1);
    expect(await readFile(join(folder, 'lib/a'), 'utf8')).toBe('A');
    expect((await stat(join(folder, 'lib/a'))).mode & 0o111).not.toBe(0);
    expect((await stat(join(folder, 'b'))).mode & 0o111).toBe(0);
    expect(await readdir(base)).toEqual(['unpacked']);
  });

  test('by several at once ends in one whole folder', async () => {
    const folder = join(base, 'unpacked');
    const one = (content: string) => ensureUnpacked(folder, ['a', 'b'], async () => [file('a', content), file('b', content)]);
    await Promise.all(['1', '2', '3', '4', '5', '6'].map(one));
    expect(await readFile(join(folder, 'a'), 'utf8')).toBe(await readFile(join(folder, 'b'), 'utf8'));
    expect(await readdir(base)).toEqual(['unpacked']);
  });

  test('replaces a folder that lacks a file', async () => {
    const folder = join(base, 'unpacked');
    await mkdir(folder);
    await writeFile(join(folder, 'a'), 'half');
    await ensureUnpacked(folder, ['a', 'b'], async () => [file('a', 'A'), file('b', 'B')]);
    expect(await readFile(join(folder, 'a'), 'utf8')).toBe('A');
    expect(await readdir(base)).toEqual(['unpacked']);
  });

  test('that fails leaves nothing, and can be tried again', async () => {
    const folder = join(base, 'unpacked');
    const failing = ensureUnpacked(folder, ['a'], async () => Promise.reject(new Error('torn')));
    await expect(failing).rejects.toMatchObject({ code: 'gpu-unpack', message: expect.stringContaining('torn') });
    expect(await readdir(base)).toEqual([]);
    await ensureUnpacked(folder, ['a'], async () => [file('a', 'A')]);
    expect(await readdir(folder)).toEqual(['a']);
  });

  test('of files without an expected one is an error', async () => {
    await expect(ensureUnpacked(join(base, 'x'), ['a', 'b'], async () => [file('a', 'A')])).rejects.toMatchObject({
      code: 'gpu-unpack',
    });
  });
});
