import { hasServer, RedisCluster, RedisProcess } from '@bufferwise-internal/services';
import { describe, expect, it } from 'vitest';
import { openPageStore } from './open-page-store.ts';
import { parseStoreAddress } from './store-address.ts';

const PASSWORD = 'hunter2/@';
const ENCODED = encodeURIComponent(PASSWORD);
const pages = Array.from({ length: 20 }, (_, i) => ({
  key: `page-${i}`,
  affinity: `text-${i}`,
  bytes: new Uint8Array(9).fill(i),
}));

async function tryStore(address: string, env: Record<string, string> = {}) {
  const { store, trouble } = await openPageStore(parseStoreAddress(address), { quotaBytes: 1, env });
  try {
    const outcomes = await store.put(pages);
    const found = await store.get(pages);
    const isKept = found.every((page, i) => page !== null && Buffer.compare(page, pages[i].bytes) === 0);
    return { stored: outcomes.filter(({ status }) => status !== 'refused').length, isKept, trouble: trouble() };
  } finally {
    await store.close();
  }
}

const GOOD = { stored: pages.length, isKept: true, trouble: undefined };

async function lock(nodes: readonly RedisProcess[]): Promise<void> {
  for (const node of nodes) await node.command('CONFIG', 'SET', 'requirepass', PASSWORD);
}

describe.runIf(hasServer('redis'))('a store that wants a password', () => {
  it('is opened with the login of the address, or that of the environment', async () => {
    const server = await RedisProcess.start();
    try {
      await lock([server]);
      const host = `127.0.0.1:${server.port}`;
      expect(await tryStore(`redis://:${ENCODED}@${host}/2?prefix=mine:&ttl=60`)).toEqual(GOOD);
      expect(await tryStore(`valkey://${host}`, { BUFFERWISE_STORE_PASSWORD: PASSWORD })).toEqual(GOOD);
      for (const [address, words] of [
        [`redis://${host}`, /wants a login/],
        [`redis://:wrong${ENCODED}@${host}`, /does not let this login in/],
      ] as const) {
        const { trouble, ...rest } = await tryStore(address);
        expect(rest).toEqual({ stored: 0, isKept: false });
        expect(trouble).toMatch(words);
        expect(trouble).not.toMatch(/hunter2/);
      }
    } finally {
      await server.stop();
    }
  });

  it('also where it is a cluster, on every node of it', async () => {
    const cluster = await RedisCluster.start();
    try {
      await lock(cluster.nodes);
      const [{ port }, second] = cluster.nodes;
      expect(await tryStore(`redis://:${ENCODED}@127.0.0.1:${port},127.0.0.1:${second.port}`)).toEqual(GOOD);
      expect(await tryStore(`valkey+cluster://127.0.0.1:${port}`, { BUFFERWISE_STORE_PASSWORD: PASSWORD })).toEqual(GOOD);
      expect((await tryStore(`redis+cluster://:wrong@127.0.0.1:${port}`)).trouble).toMatch(/does not let this login in/);
    } finally {
      await cluster.stop();
    }
  });
});
