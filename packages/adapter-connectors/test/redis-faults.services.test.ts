import { randomBytes } from 'node:crypto';
import { type Fault, FaultProxy, hasServer, RedisProcess, until, type WayFault } from '@bufferwise-internal/services';
import { createClient } from 'redis';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { RedisPageStore, type RedisPageStoreOptions } from '../src/redis/redis-page-store.ts';

const TIMEOUT_MS = 400;
const BACKOFF = { minMs: 5, maxMs: 100 };
/** What a call may take beyond its own limit on a busy machine. */
const GRACE_MS = 4_000;
/** How long a fault is tried, where most calls are not even sent. */
const ROUNDS_MS = 700;
const FULL = { status: 'refused', reason: 'full' };
const STORED = { status: 'stored' };
const pages = new Map(Array.from({ length: 40 }, (_, i) => [`page-${i}`, new Uint8Array(randomBytes(i * 500 + 1))]));
const keys = [...pages.keys()].map((key) => ({ key, affinity: 'text' }));
const entries = [...pages].map(([key, bytes]) => ({ key, affinity: 'text', bytes }));
const [first] = keys;

async function bounded<T>(call: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const answer = await call();
  expect(performance.now() - began).toBeLessThan(TIMEOUT_MS + GRACE_MS);
  return answer;
}

/** Every answer is the page that was stored, or null. */
function expectRightOrMissing(found: readonly (Uint8Array | null)[], asked = keys): number {
  let hits = 0;
  for (const [i, bytes] of found.entries()) {
    if (bytes === null) continue;
    expect(Buffer.compare(bytes, pages.get(asked[i].key) as Uint8Array)).toBe(0);
    hits++;
  }
  return hits;
}

const recovered = (store: RedisPageStore) =>
  until('the store has its pages again', async () => (await store.get([first]))[0] !== null);

describe.runIf(hasServer('redis'))('behind a bad network', () => {
  let redis: RedisProcess;
  let proxy: FaultProxy;
  const stores: RedisPageStore[] = [];
  const open = async (options: Partial<RedisPageStoreOptions> = {}) => {
    const server = { single: { url: `redis://127.0.0.1:${proxy.port}` } };
    const store = await RedisPageStore.open({ server, timeoutMs: TIMEOUT_MS, backoff: BACKOFF, ...options });
    stores.push(store);
    return store;
  };

  beforeAll(async () => {
    redis = await RedisProcess.start();
    proxy = await FaultProxy.start(redis.port);
  });
  afterEach(async () => {
    proxy.fault = {};
    await Promise.all(stores.splice(0).map((store) => store.close()));
    await redis.command('FLUSHALL');
  });
  afterAll(async () => {
    await proxy?.stop();
    await redis?.stop();
  });

  let seed = 1;
  const chance = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  const changed = (change: WayFault['change']): Fault => ({ toClient: { change } });
  const faults: Record<string, () => Fault> = {
    'answers that come late': () => ({ toClient: { delayMs: 3 } }),
    'answers that come too late': () => ({ toClient: { delayMs: 2 * TIMEOUT_MS } }),
    'answers that end in the middle': () => ({ toClient: { cutAfterBytes: 20_000 + chance(100_000) } }),
    'pieces that are lost': () => changed((bytes) => (chance(3) === 0 ? undefined : bytes)),
    'flipped bits': () =>
      changed((bytes) => {
        const flipped = Buffer.from(bytes);
        flipped[chance(flipped.length)] ^= 1 << chance(8);
        return flipped;
      }),
    'noise instead of answers': () => changed((bytes) => randomBytes(bytes.length)),
    'a bulk that claims to be huge': () => changed(() => Buffer.from('$500000000\r\nabc')),
    'answers of another kind': () => changed((bytes) => Buffer.from(':7\r\n'.repeat(Math.ceil(bytes.length / 500)))),
    'answers of other commands': () => changed((bytes) => Buffer.concat([Buffer.from('$2\r\nhi\r\n'), bytes])),
    silence: () => ({ silent: true }),
    'connections that are refused': () => ({ refuse: true }),
  };

  test.each(Object.entries(faults))(
    '%s: right bytes or a miss, in bounded time, and all is well afterwards',
    async (name, fault) => {
      const store = await open();
      expect(await store.put(entries)).toEqual(entries.map(() => STORED));
      proxy.fault = fault();
      if (name === 'connections that are refused') proxy.reset();
      const patience = performance.now() + ROUNDS_MS;
      for (let sent = 0; sent < 12 && performance.now() < patience; ) {
        const { skipped } = store.statistics();
        expectRightOrMissing(await bounded(() => store.get(keys)));
        for (const present of await bounded(() => store.has(keys))) expect(present).toBeTypeOf('boolean');
        const outcomes = await bounded(() => store.put(entries));
        for (const { status } of outcomes) expect(['stored', 'exists', 'refused']).toContain(status);
        if (store.statistics().skipped < skipped + 3 * keys.length) sent++;
        await new Promise(setImmediate);
      }
      const { timeouts, connectionErrors, nonsense, skipped, damaged } = store.statistics();
      proxy.fault = {};
      proxy.reset();
      await recovered(store);
      await store.put(entries);
      await until('every page is there', async () => expectRightOrMissing(await store.get(keys)) === keys.length);
      if (name === 'answers that come late')
        expect({ timeouts, skipped, damaged }).toEqual({ timeouts: 0, skipped: 0, damaged: 0 });
      else expect(timeouts + connectionErrors + nonsense + skipped + damaged).toBeGreaterThan(0);
      expect(store.statistics().connects).toBeGreaterThan(1);
    },
  );

  test('a server that is silent costs one call its time, and the calls after it nothing', async () => {
    const store = await open();
    await store.put(entries);
    proxy.fault = { silent: true };
    await store.get(keys);
    const began = performance.now();
    for (let i = 0; i < 200; i++) expect(await store.get([first])).toEqual([null]);
    expect(performance.now() - began).toBeLessThan(GRACE_MS);
    expect(store.statistics()).toMatchObject({ timeouts: keys.length, skipped: 200 });
  });

  test('damage on the way removes no page that is sound', async () => {
    const store = await open();
    await store.put([entries[39]]);
    proxy.fault = changed((bytes) => {
      const flipped = Buffer.from(bytes);
      if (flipped.length > 1000) flipped[flipped.length >> 1] ^= 1;
      return flipped;
    });
    expect(await store.get([keys[39]])).toEqual([null]);
    proxy.fault = {};
    await until('the page is back', async () => (await store.get([keys[39]]))[0] !== null);
    expect(store.statistics().damaged).toBe(1);
  });

  test('an aborted call ends at once with the reason, and condemns no connection', async () => {
    const store = await open({ timeoutMs: 60_000 });
    await store.put(entries);
    proxy.fault = { silent: true };
    const caller = new AbortController();
    const calls = [store.get(keys, { signal: caller.signal }), store.put(entries, { signal: caller.signal })];
    caller.abort('enough');
    for (const outcome of await Promise.allSettled(calls)) expect(outcome).toEqual({ status: 'rejected', reason: 'enough' });
    expect(store.statistics()).toMatchObject({ timeouts: 0, connectionErrors: 0, connects: 1 });
  });

  test('a store opens without its server, and finds it later', async () => {
    proxy.fault = { refuse: true };
    const store = await open();
    expect(await store.get([first])).toEqual([null]);
    expect(await store.put([entries[0]])).toEqual([FULL]);
    expect(await store.delete([first])).toEqual([false]);
    expect(store.statistics()).toMatchObject({ connects: 0, skipped: 3, misses: 1, refused: 1 });
    proxy.fault = {};
    await until('the page is stored', async () => (await store.put([entries[0]]))[0].status !== 'refused');
    expectRightOrMissing(await store.get([first]));
  });

  test('a client that was passed is left alone after it failed, used again later, and stays open', async () => {
    const client = await createClient({ url: `redis://127.0.0.1:${proxy.port}`, disableOfflineQueue: true })
      .on('error', () => {})
      .connect();
    try {
      const store = await open({ server: { client } });
      await store.put(entries);
      proxy.fault = { refuse: true };
      proxy.reset();
      await until('the client has noticed', () => !client.isReady);
      for (let i = 0; i < 20; i++) expect(await bounded(() => store.get([first]))).toEqual([null]);
      proxy.fault = {};
      await recovered(store);
      await store.close();
      expect(await client.ping()).toBe('PONG');
    } finally {
      client.destroy();
    }
  });

  test('what is under way stays within its limits, and the rest waits its turn', async () => {
    const store = await open({ timeoutMs: 20_000, maxCommandsInFlight: 3, maxBytesInFlight: 20_000 });
    expect(await store.put(entries)).toEqual(entries.map(() => STORED));
    expect(expectRightOrMissing(await store.get(keys))).toBe(keys.length);
  });
});

describe.runIf(hasServer('redis'))('on a server in trouble', () => {
  let redis: RedisProcess;
  let store: RedisPageStore;
  const start = async (...settings: string[]) => {
    redis = await RedisProcess.start({ settings });
    store = await RedisPageStore.open({ server: { single: { url: redis.url } }, timeoutMs: TIMEOUT_MS, backoff: BACKOFF });
  };
  afterEach(async () => {
    redis.thaw();
    await store.close();
    await redis.stop();
  });

  test('a killed server is a miss, and used again once it is back', async () => {
    await start();
    await store.put(entries);
    await redis.kill();
    expect(await bounded(() => store.get(keys))).toEqual(keys.map(() => null));
    expect(await bounded(() => store.put(entries))).toEqual(entries.map(() => FULL));
    await redis.restart();
    await until('pages are stored again', async () => (await store.put(entries))[0].status === 'stored');
    expect(expectRightOrMissing(await store.get(keys))).toBeGreaterThan(0);
  });

  test('a frozen server is a miss, and used again once it moves', async () => {
    await start();
    await store.put(entries);
    redis.freeze();
    expect(await bounded(() => store.get(keys))).toEqual(keys.map(() => null));
    for (let i = 0; i < 20; i++) await bounded(() => store.get([first]));
    redis.thaw();
    await recovered(store);
    expect(expectRightOrMissing(await store.get(keys))).toBe(keys.length);
  });

  test('a full server refuses, keeps what it has, and takes pages again when there is room', async () => {
    await start('--maxmemory', '4mb', '--maxmemory-policy', 'noeviction');
    const large = Array.from({ length: 64 }, (_, i) => ({ key: `large-${i}`, bytes: new Uint8Array(randomBytes(100_000)) }));
    const outcomes = [];
    for (const entry of large) outcomes.push(...(await store.put([entry])));
    expect(outcomes[0]).toEqual(STORED);
    expect(outcomes.at(-1)).toEqual(FULL);
    const found = await store.get(large);
    for (const [i, { status }] of outcomes.entries()) {
      if (status === 'stored') expect(Buffer.compare(found[i] as Uint8Array, large[i].bytes)).toBe(0);
      else expect(found[i]).toBeNull();
    }
    const { serverErrors, refused } = store.statistics();
    expect({ serverErrors, connects: store.statistics().connects }).toEqual({ serverErrors: refused, connects: 1 });
    await store.delete(large);
    expect(await store.put([large[63]])).toEqual([STORED]);
  });

  test('a read-only server gives its pages out and takes none', async () => {
    await start();
    await store.put([entries[0]]);
    await redis.command('CONFIG', 'SET', 'replica-serve-stale-data', 'yes');
    const [host, port] = ['127.0.0.1', '1'];
    await redis.command('REPLICAOF', host, port);
    expect(expectRightOrMissing(await store.get([first]))).toBe(1);
    expect(await store.put([entries[1]])).toEqual([FULL]);
    expect(store.statistics()).toMatchObject({ serverErrors: 1, refused: 1, connects: 1 });
    await redis.command('REPLICAOF', 'NO', 'ONE');
    expect(await store.put([entries[1]])).toEqual([STORED]);
  });

  test('values that are no pages are misses, and make way for pages', async () => {
    await start();
    const hostile: Record<string, string[]> = {
      huge: ['SETRANGE', '30000000', 'x'],
      empty: ['SET', ''],
      short: ['SET', 'BWPG'],
      list: ['RPUSH', 'x'],
      hash: ['HSET', 'a', 'b'],
      number: ['INCR'],
    };
    for (const [name, [command, ...rest]] of Object.entries(hostile)) await redis.command(command, `bufferwise:${name}`, ...rest);
    const bytes = new Uint8Array(randomBytes(1000));
    for (const key of Object.keys(hostile)) {
      expect(await store.has([{ key }]), key).toEqual([false]);
      expect(await store.put([{ key, bytes }]), key).toEqual([STORED]);
      expect(Buffer.compare((await store.get([{ key }]))[0] as Uint8Array, bytes)).toBe(0);
    }
    for (const [name, [command, ...rest]] of Object.entries(hostile)) {
      await redis.command('DEL', `bufferwise:${name}`);
      await redis.command(command, `bufferwise:${name}`, ...rest);
      expect(await store.get([{ key: name }]), name).toEqual([null]);
      expect(await store.put([{ key: name, bytes }]), name).toEqual([STORED]);
    }
    const { bytesRead, nonsense, connects } = store.statistics();
    expect({ bytesRead, nonsense, connects }).toEqual({ bytesRead: 6000, nonsense: 0, connects: 1 });
  });

  test('pages without a time of their own get that of the store', async () => {
    await start();
    const brief = await RedisPageStore.open({
      server: { single: { url: redis.url } },
      defaultTtlMs: 60_000,
      timeoutMs: TIMEOUT_MS,
      backoff: BACKOFF,
    });
    await brief.put([{ key: 'a', bytes: pages.get('page-1') as Uint8Array }]);
    await store.put([{ key: 'b', bytes: pages.get('page-1') as Uint8Array }]);
    await brief.close();
    expect(Number(await redis.command('PTTL', 'bufferwise:a'))).toBeGreaterThan(0);
    expect(await redis.command('PTTL', 'bufferwise:b')).toBe('-1');
    for (const [i, ttlMs] of [0.1, 1e300].entries()) {
      expect(await store.put([{ key: `c-${i}`, bytes: Uint8Array.of(1), ttlMs }])).toEqual([STORED]);
    }
  });
});
