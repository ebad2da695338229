import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readClusterKeys } from './cluster-keys.ts';
import { parseNatsUrl } from './nats-url.ts';
import { clusterChoice, doubtOf } from './role-args.ts';

const SECRET = '0123456789abcdef';
const ENVIRONMENT = { BUFFERWISE_NATS: 'nats://control', BUFFERWISE_CLUSTER_KEY: SECRET };

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bufferwise-roles-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the flags of a server that works with others', () => {
  it('are none where it works alone', async () => {
    expect(await clusterChoice({ role: 'both' }, {})).toBeNull();
  });

  it('have a default each, and may come from the environment', async () => {
    expect(await clusterChoice({ role: 'decode' }, ENVIRONMENT)).toMatchObject({
      role: 'decode',
      nats: { servers: 'control:4222' },
      pages: '127.0.0.1:0',
      pagesAs: null,
      prefillFrom: 256,
      prefillMs: 30_000,
    });
  });

  it.each([
    [{ role: 'reader' }, ENVIRONMENT, /--role is "reader"/],
    [{ role: 'prefill' }, {}, /--role prefill works with others: give --nats/],
    [{ role: 'both', pages: '127.0.0.1:1' }, {}, /--pages is for a server that works with others/],
    [{ role: 'prefill', 'prefill-from': '16' }, ENVIRONMENT, /--prefill-from is for a server that answers/],
    [{ role: 'both', pages: 'somewhere' }, ENVIRONMENT, /--pages is "somewhere"; write HOST:PORT/],
    [{ role: 'both', pages: '127.0.0.1:65536' }, ENVIRONMENT, /--pages is/],
    [{ role: 'both', pages: '0.0.0.0:7000' }, ENVIRONMENT, /say with --pages-as/],
    [{ role: 'both', 'prefill-from': '0' }, ENVIRONMENT, /--prefill-from is "0"/],
    [{ role: 'both', 'prefill-timeout': 'soon' }, ENVIRONMENT, /--prefill-timeout is "soon"/],
    [{ role: 'both' }, { BUFFERWISE_NATS: 'nats://control' }, /give --cluster-key/],
  ])('%j is refused', async (given, env, message) => {
    await expect(clusterChoice(given, env)).rejects.toThrow(message);
  });
});

describe('an address that only this machine reaches', () => {
  const doubt = async (given: object, nats = 'nats://control') =>
    doubtOf(
      (await clusterChoice({ role: 'both', ...given }, { ...ENVIRONMENT, BUFFERWISE_NATS: nats })) as NonNullable<
        Awaited<ReturnType<typeof clusterChoice>>
      >,
    );

  it('is told where NATS is elsewhere, and pages are to come there', async () => {
    expect(await doubt({})).toMatch(/arrive at 127.0.0.1:0, where only this machine/);
    expect(await doubt({ pages: 'localhost:7000' })).toMatch(/localhost:7000/);
    expect(await doubt({}, 'nats://[::1]:4222')).toBeNull();
    expect(await doubt({ pages: '10.0.0.7:7000' })).toBeNull();
    expect(await doubt({ 'pages-as': 'worker-7:7000' })).toBeNull();
    expect(await doubt({ role: 'prefill' })).toBeNull();
  });
});

describe('the secret of all workers', () => {
  it('is the same from a file as from the environment, whatever ends its line, and makes a key for each purpose', async () => {
    const path = join(folder, 'shared.key');
    await writeFile(path, `${SECRET}\r\n`);
    const keys = await readClusterKeys(path, undefined);
    expect(keys).toEqual(await readClusterKeys(undefined, SECRET));
    expect(keys.pages).not.toEqual(keys.control);
    expect(keys.pages).not.toEqual((await readClusterKeys(undefined, `${SECRET}0`)).pages);
  });

  it('is refused when it is short, and says which file is not there', async () => {
    await expect(readClusterKeys(undefined, SECRET.slice(1))).rejects.toThrow(/16 random bytes or more/);
    await expect(readClusterKeys(join(folder, 'nowhere'), SECRET)).rejects.toThrow(/cannot read .*nowhere: ENOENT/);
    await writeFile(join(folder, 'a-model'), Buffer.alloc(4097, 'x'));
    await expect(readClusterKeys(join(folder, 'a-model'), SECRET)).rejects.toThrow(/a-model has more than 4096 bytes/);
  });
});

describe('the address of NATS', () => {
  it.each([
    ['control', { servers: 'control:4222' }],
    ['nats://control:4223/', { servers: 'control:4223' }],
    ['nats://u:p%40ss@control', { servers: 'control:4222', user: 'u', pass: 'p@ss' }],
    ['nats://a-token@control', { servers: 'control:4222', token: 'a-token' }],
    ['tls://[::1]:4222', { servers: '[::1]:4222', tls: {} }],
  ])('%s', (text, server) => {
    expect(parseNatsUrl(text)).toEqual(server);
  });

  it('is not repeated when it is none, as there may be a password in it', () => {
    for (const text of [
      'http://u:secret@control',
      'nats://u:secret@',
      'nats://u:secret@control/path',
      'nats://u:secret@control?tls=1',
      'nats://u:secret@control:x',
    ]) {
      expect(() => parseNatsUrl(text)).toThrow(/--nats takes/);
      expect(() => parseNatsUrl(text)).not.toThrow(/secret/);
    }
  });
});
