import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { describeKeys, describeTierStore } from '../../../test/support/tier-store-suite.ts';
import { FileTierStore } from './file-tier-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'file-tier-store-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const host = hostname().replaceAll(/[^\w.-]/g, '_');

describe('a store in files', () => {
  describeTierStore(() => FileTierStore.open(folder));
  describeKeys(() => FileTierStore.open(folder));

  test('makes the folder where it does not exist, and leaves nothing of its own in it', async () => {
    const deep = join(folder, 'not', 'there', 'yet');
    const store = await FileTierStore.open(deep);
    await store.put('a', new Uint8Array(1));
    expect(existsSync(join(store.folder, 'a'))).toBe(true);
    await store.close();
    await store.close();
    expect(readdirSync(deep)).toEqual([]);
  });

  test('removes what a process left that has ended, and nothing else', async () => {
    const outer = join(folder, 'shared');
    const ended = spawnSync(process.execPath, ['-e', '']).pid;
    const kept = [`bufferwise-tier-${host}-${process.pid}-00ff`, `bufferwise-tier-elsewhere-${ended}-00ff`, 'photos'];
    for (const name of [...kept, `bufferwise-tier-${host}-${ended}-00ff`]) mkdirSync(join(outer, name), { recursive: true });
    const store = await FileTierStore.open(outer);
    await store.close();
    expect(readdirSync(outer).sort()).toEqual([...kept].sort());
  });

  test('says why a folder cannot be used', async () => {
    await expect(FileTierStore.open(join(process.execPath, 'inside'))).rejects.toMatchObject({ code: 'ENOTDIR' });
  });

  test('passes on what the file system says, if it is not that a file is missing', async () => {
    const store = await FileTierStore.open(folder);
    mkdirSync(join(store.folder, 'a'));
    await expect(store.get('a')).rejects.toMatchObject({ code: 'EISDIR' });
    await store.close();
  });
});
