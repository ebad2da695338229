import type { PageKey, PageStore } from '@bufferwise/adapter-kit';
import { describePageStore } from '@bufferwise/adapter-kit/conformance/page-store';
import { hasServer, RedisCluster, RedisProcess } from '@bufferwise-internal/services';
import { createClient, createCluster, RESP_TYPES } from 'redis';
import { afterAll, beforeAll, describe } from 'vitest';
import { RedisPageStore } from '../src/redis/redis-page-store.ts';
import type { RedisServer } from '../src/redis/redis-server.ts';

/** Reads and writes values behind the back of a store. */
interface Medium {
  get(key: string): Promise<Uint8Array | null>;
  set(key: string, value: Buffer): Promise<unknown>;
}

let numPrefixes = 0;

/** Stores on one server, each with a prefix of its own. */
function harness(server: () => RedisServer, medium: () => Medium) {
  const prefixes = new WeakMap<PageStore, string>();
  const open = async (keyPrefix: string): Promise<PageStore> => {
    const store = await RedisPageStore.open({ server: server(), keyPrefix, timeoutMs: 20_000, connectTimeoutMs: 20_000 });
    prefixes.set(store, keyPrefix);
    return store;
  };
  const nameOf = (store: PageStore, { key }: PageKey) => `${prefixes.get(store)}${key}`;
  return {
    create: () => open(`suite-${numPrefixes++}:`),
    async tamper(store: PageStore, key: PageKey, change: (stored: Uint8Array) => Uint8Array) {
      const value = await medium().get(nameOf(store, key));
      if (value !== null) await medium().set(nameOf(store, key), Buffer.from(change(value)));
    },
    async reopen(store: PageStore) {
      await store.close();
      return open(prefixes.get(store) as string);
    },
    another: (store: PageStore) => open(prefixes.get(store) as string),
  };
}

describe.runIf(hasServer('redis'))('on a single server', () => {
  let redis: RedisProcess;
  const client = async () =>
    createClient({ url: redis.url })
      .on('error', () => {})
      .connect();
  let medium: Awaited<ReturnType<typeof client>>;
  const bytes = (): Medium => medium.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }) as unknown as Medium;

  beforeAll(async () => {
    redis = await RedisProcess.start();
    medium = await client();
  });
  afterAll(async () => {
    medium?.destroy();
    await redis?.stop();
  });

  describePageStore(
    'Redis, single, by options,',
    harness(() => ({ single: { url: redis.url } }), bytes),
  );
  describePageStore(
    'Redis, single, by a client,',
    harness(() => ({ client: medium }), bytes),
  );
});

describe.runIf(hasServer('redis'))('on a cluster of three masters with replicas', () => {
  let cluster: RedisCluster;
  const client = async () =>
    createCluster({ rootNodes: cluster.rootNodes })
      .on('error', () => {})
      .connect();
  let medium: Awaited<ReturnType<typeof client>>;
  const bytes = (): Medium => medium.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }) as unknown as Medium;

  beforeAll(async () => {
    cluster = await RedisCluster.start();
    medium = await client();
  });
  afterAll(async () => {
    medium?.destroy();
    await cluster?.stop();
  });

  describePageStore(
    'Redis, cluster, by options,',
    harness(() => ({ cluster: { rootNodes: cluster.rootNodes } }), bytes),
  );
  describePageStore(
    'Redis, cluster, by a client,',
    harness(() => ({ clusterClient: medium }), bytes),
  );
});
