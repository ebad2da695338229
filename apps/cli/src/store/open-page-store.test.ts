import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FilePageStore } from '@bufferwise/adapter-connectors/file-store';
import { freePorts } from '@bufferwise-internal/services';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CliError } from '../cli-error.ts';
import { openPageStore } from './open-page-store.ts';
import { parseStoreAddress } from './store-address.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bufferwise-open-store-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const AWS = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'hunter2', AWS_REGION: 'eu-test-1' };
const open = (address: string, more: { nearBytes?: number; env?: Record<string, string> } = {}) =>
  openPageStore(parseStoreAddress(address), { quotaBytes: 1 << 20, env: {}, ...more });
const page = { key: 'a', bytes: new Uint8Array(9) };

describe('a store is opened', () => {
  it('in a folder, and says so when another has it', async () => {
    const path = join(folder, 'shared');
    const { store, trouble } = await open(`file:${path}`);
    expect(await store.put([page])).toEqual([{ status: 'stored' }]);
    expect(store.statistics().quotaBytes).toBe(1 << 20);
    expect(trouble()).toBeUndefined();
    await expect(open(path)).rejects.toThrow(CliError);
    await expect(open(path)).rejects.toThrow(`--store ${path} cannot be used: `);
    await store.close();
  });

  it('behind pages in memory, which also reach it', async () => {
    const path = join(folder, 'behind');
    const { store } = await open(path, { nearBytes: 1 << 10 });
    await store.put([page]);
    await store.close();
    const later = await FilePageStore.open(path);
    expect(await later.has([page])).toEqual([true]);
    await later.close();
  });

  it('of a server that is away, which costs no time and is told', async () => {
    const [port] = await freePorts(1);
    for (const scheme of ['redis', 'redis+cluster']) {
      const { store, trouble } = await open(`${scheme}://me:hunter2@127.0.0.1:${port}`);
      expect(await store.get([page])).toEqual([null]);
      expect(trouble()).toMatch(`--store ${scheme}://127.0.0.1:${port} cannot be reached`);
      await store.close();
    }
  });

  it('of a bucket, whose keys are in the environment', async () => {
    const { store } = await open('s3://pages', { env: AWS });
    expect(store.name).toBe('S3 page store');
    await store.close();
  });

  it('of a bucket at an endpoint, and tells when that is away', async () => {
    const [port] = await freePorts(1);
    const { store, trouble } = await open('s3://pages', { env: { ...AWS, AWS_ENDPOINT_URL: `http://127.0.0.1:${port}/` } });
    expect(trouble()).toBeUndefined();
    expect(await store.get([page])).toEqual([null]);
    expect(trouble()).toMatch('--store s3://pages lost its connection');
    await store.close();
  });
});

describe('a bucket cannot be opened', () => {
  it.each(Object.keys(AWS))('without %s', async (name) => {
    const env = Object.fromEntries(Object.entries(AWS).filter(([each]) => each !== name));
    await expect(open('s3://pages', { env })).rejects.toThrow(CliError);
    await expect(open('s3://pages', { env })).rejects.toThrow(/needs AWS_ACCESS_KEY_ID, .* in the environment/);
  });

  it('at an endpoint that is none, or has a login', async () => {
    for (const AWS_ENDPOINT_URL of ['127.0.0.1:9000', 'ftp://a', 'http://me:hunter2@a']) {
      const opened = open('s3://pages', { env: { ...AWS, AWS_ENDPOINT_URL } });
      await expect(opened).rejects.toThrow(/AWS_ENDPOINT_URL is no http or https address without a login/);
      await expect(opened).rejects.not.toThrow(/hunter2/);
    }
  });
});
