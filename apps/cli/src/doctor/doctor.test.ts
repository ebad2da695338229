import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createColors } from 'picocolors';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkCacheFolder } from './check-cache-folder.ts';
import { type AdapterFacts, describeAdapter } from './check-gpu.ts';
import { checkMemory } from './check-memory.ts';
import { checkNode } from './check-node.ts';
import { checkPackages } from './check-packages.ts';
import { checkPrograms } from './check-programs.ts';
import { findingsText } from './report.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bufferwise-doctor-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const GPU: AdapterFacts = {
  name: 'Some GPU',
  isSoftware: false,
  features: ['shader-f16', 'subgroups'],
  limits: { maxBufferSize: 2 ** 31, maxStorageBufferBindingSize: 2 ** 30, maxStorageBuffersPerShaderStage: 10 },
};

describe('Node', () => {
  it.each(['20.19.0', '20.20.2', '22.0.0', '24.1.0'])('%s is new enough', (version) => {
    expect(checkNode(version)).toMatchObject({ state: 'ok', found: version, mend: null });
  });

  it.each(['20.18.9', '18.20.0'])('%s is not, and what to install is named', (version) => {
    expect(checkNode(version)).toMatchObject({ state: 'fail', mend: 'install Node 20.19 or later' });
  });
});

describe('a device', () => {
  it('of hardware is all well, and says how large a pool may be', () => {
    const [device, limits, half, , time] = describeAdapter(GPU);
    expect(device).toMatchObject({ state: 'ok', found: 'Some GPU', mend: null });
    expect(limits.means).toBe('a pool may have 1 GiB; larger ones are cut');
    expect(half).toMatchObject({ name: 'shader-f16', found: 'yes', state: 'ok' });
    expect(time).toMatchObject({ name: 'timestamp-query', found: 'no', state: 'ok' });
  });

  it('of software works, with a note', () => {
    expect(describeAdapter({ ...GPU, isSoftware: true })[0]).toMatchObject({ state: 'warn', found: 'Some GPU (software)' });
  });
});

it('little memory is a note', () => {
  expect(checkMemory(2 ** 31, 2 ** 33)).toMatchObject({ state: 'ok', found: '2 GiB free of 8 GiB' });
  expect(checkMemory(2 ** 29, 2 ** 33)).toMatchObject({ state: 'warn' });
});

it('a package that is not beside the command is a note that says how to get it', () => {
  expect(checkPackages().map(({ state, mend }) => [state, mend])).toEqual([
    ['ok', null],
    ['ok', null],
    ['ok', null],
  ]);
  const [webgpu, software, redis] = checkPackages((name) => name === 'webgpu');
  expect(webgpu).toMatchObject({ state: 'ok', found: 'installed' });
  expect(software).toMatchObject({ name: 'software device', state: 'warn' });
  expect(redis).toMatchObject({ state: 'warn', mend: expect.stringMatching(/^npm install redis, with --global/) });
});

it('servers are looked for in every folder of PATH, under both names, and must be executable', async () => {
  const missing = await checkPrograms(`/nowhere:${folder}::`);
  expect(missing.map(({ name, state, mend }) => [name, state, mend])).toEqual([
    ['redis-server', 'warn', 'install it, on Debian: apt-get install redis-server'],
    ['nats-server', 'warn', 'install it, on Debian: apt-get install nats-server'],
  ]);
  await writeFile(join(folder, 'valkey-server'), '');
  await chmod(join(folder, 'valkey-server'), 0o755);
  await writeFile(join(folder, 'nats-server'), '');
  await chmod(join(folder, 'nats-server'), 0o644);
  const found = await checkPrograms(`/nowhere:${folder}`);
  expect(found.map(({ state }) => state)).toEqual(['ok', 'warn']);
  expect(found[0].found).toBe(join(folder, 'valkey-server'));
});

it('the cache folder is the one that XDG_CACHE_HOME names', async () => {
  const before = process.env.XDG_CACHE_HOME;
  process.env.XDG_CACHE_HOME = folder;
  try {
    expect(await checkCacheFolder()).toMatchObject({ state: 'ok', found: `${join(folder, 'bufferwise')} (empty)` });
  } finally {
    if (before === undefined) delete process.env.XDG_CACHE_HOME;
    else process.env.XDG_CACHE_HOME = before;
  }
});

describe('the report', () => {
  const findings = [checkNode('18.0.0'), ...describeAdapter({ ...GPU, isSoftware: true }), checkMemory(2 ** 31, 2 ** 33)];

  it.each([60, 120])('reads the same at %i columns', async (columns) => {
    const text = findingsText(findings, { columns, colors: createColors(false) });
    expect(text.split('\n').filter((line) => line.length > columns)).toEqual([]);
    await expect(text).toMatchFileSnapshot(`../../test/snapshots/doctor-${columns}.txt`);
  });

  it('ends with what is wrong, or how many notes there are', () => {
    const last = (from: number) =>
      findingsText(findings.slice(from), { columns: 80, colors: createColors(false) })
        .trimEnd()
        .split('\n')
        .at(-1);
    expect(last(0)).toBe('Not ready: Node.');
    expect(last(1)).toBe('Ready, with 1 note.');
    expect(last(2)).toBe('Ready.');
  });
});
