import { randomBytes } from 'node:crypto';
import { hasServer, RedisCluster, type RedisProcess, until } from '@bufferwise-internal/services';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RedisPageStore } from '../src/redis/redis-page-store.ts';

const TIMEOUT_MS = 1_000;
/** What a call may take beyond its own limit on a busy machine. */
const GRACE_MS = 5_000;
const bytes = new Uint8Array(randomBytes(5_000));
/** Pages of many texts, so that every node has some. */
const texts = Array.from({ length: 30 }, (_, i) => `text-${i}`);
const entries = texts.flatMap((affinity) => [0, 1, 2].map((i) => ({ key: `${affinity}-${i}`, affinity, bytes })));

describe.runIf(hasServer('redis'))('a cluster', () => {
  let cluster: RedisCluster;
  let store: RedisPageStore;
  beforeEach(async () => {
    cluster = await RedisCluster.start();
    const server = { cluster: { rootNodes: cluster.rootNodes } };
    store = await RedisPageStore.open({ server, timeoutMs: TIMEOUT_MS, backoff: { minMs: 10, maxMs: 200 } });
    expect(await store.put(entries)).toEqual(entries.map(() => ({ status: 'stored' })));
  });
  afterEach(async () => {
    for (const node of cluster.nodes) node.thaw();
    await store.close();
    await cluster.stop();
  });

  const masterOf = (affinity: string, asked?: RedisProcess) => cluster.masterOf(`bufferwise:{${affinity}}`, asked);

  test('keeps the pages of one text on one node, and those of many texts on all', async () => {
    const masters = await Promise.all(texts.map((text) => masterOf(text)));
    expect(new Set(masters).size).toBe(3);
    for (const [i, text] of texts.slice(0, 5).entries()) {
      for (const page of [0, 1, 2]) {
        expect(await masters[i].command('STRLEN', `bufferwise:{${text}}${text}-${page}`)).toBe(String(bytes.length + 16));
      }
    }
  });

  test.each(['killed', 'frozen'])(
    'goes on when a master is %s: the others at once, its pages when its replica has taken over',
    async (how) => {
      const lost = await masterOf(texts[0]);
      const asked = cluster.nodes.find((node) => node !== lost) as RedisProcess;
      const masters = new Map(await Promise.all(texts.map(async (text) => [text, await masterOf(text)] as const)));
      // What was answered as stored may be lost with the master that has not passed it on yet.
      await until('the replicas have it all', async () => (await lost.command('WAIT', '1', '1000')) === '1');
      if (how === 'killed') await lost.kill();
      else lost.freeze();

      const began = performance.now();
      const found = await store.get(entries);
      expect(performance.now() - began).toBeLessThan(TIMEOUT_MS + GRACE_MS);
      for (const [i, page] of found.entries()) {
        if (masters.get(entries[i].affinity) === lost) expect(page).toBeNull();
        else expect(page).not.toBeNull();
        if (page !== null) expect(Buffer.compare(page, bytes)).toBe(0);
      }

      await until('the replica has taken over', async () => (await masterOf(texts[0], asked)) !== lost);
      await until('all pages are there again', async () => {
        const again = await store.get(entries);
        for (const page of again) if (page !== null) expect(Buffer.compare(page, bytes)).toBe(0);
        return again.every((page) => page !== null);
      });
      const fresh = { key: `${texts[0]}-later`, affinity: texts[0], bytes };
      expect(await store.put([fresh])).toEqual([{ status: 'stored' }]);
      const { timeouts, connectionErrors, connects } = store.statistics();
      expect(timeouts + connectionErrors).toBeGreaterThan(0);
      expect(connects).toBeGreaterThan(1);
    },
  );

  test('that moves a slot to another node is followed', async () => {
    const [text] = texts;
    const from = await masterOf(text);
    const to = cluster.nodes.slice(0, 3).find((node) => node !== from) as RedisProcess;
    const slot = await from.command('CLUSTER', 'KEYSLOT', `bufferwise:{${text}}`);
    const [fromId, toId] = [await from.command('CLUSTER', 'MYID'), await to.command('CLUSTER', 'MYID')];
    await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId);
    await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId);
    for (const page of [0, 1]) {
      await from.command('MIGRATE', '127.0.0.1', String(to.port), `bufferwise:{${text}}${text}-${page}`, '0', '5000');
    }
    const pages = entries.filter(({ affinity }) => affinity === text);
    const here = async () => (await store.get(pages)).every((page) => page !== null && Buffer.compare(page, bytes) === 0);
    expect(await here()).toBe(true);
    await from.command('MIGRATE', '127.0.0.1', String(to.port), `bufferwise:{${text}}${text}-2`, '0', '5000');
    for (const node of [to, from]) await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', toId);
    expect(await here()).toBe(true);
    expect(store.statistics()).toMatchObject({ misses: 0, timeouts: 0, connectionErrors: 0, serverErrors: 0 });
  });
});
