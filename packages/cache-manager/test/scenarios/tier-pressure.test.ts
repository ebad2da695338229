import { defineCacheConfig } from '@bufferwise/core-policy';
import { expect, test } from 'vitest';
import { HostPageDevice, KvCacheManager } from '../../src/index.ts';
import { stateOf } from '../../src/testing/manager-registry.ts';
import { QueueLog } from '../support/queue-log.ts';
import { scenario } from '../support/scenario.ts';
import { full, model, Stage, seq } from '../support/stage.ts';

/** Tokens that no other text begins with. */
const text = (name: number, count: number) => seq(count).map((token) => name * 1000 + token);
const tight = { maxUtilForResume: 1 };

scenario(
  'what nobody holds does not push out of the host what matters more, and is dropped instead',
  model([full()], { ...tight, slots: 4, hostSlots: 4 }),
  async (stage) => {
    await stage.donate(text(1, 16), [16], { priority: () => 90 });
    await stage.donate(text(2, 16), [16], { priority: () => 10 });
    await stage.manager.settled();
    expect([stage.used(0), stage.probe(text(1, 16))]).toEqual([[4, 4], 16]);
    await stage.donate(text(3, 16), [16]);
    await stage.manager.settled();
    expect([text(1, 16), text(2, 16), text(3, 16)].map((tokens) => stage.probe(tokens))).toEqual([16, 0, 16]);
  },
);

test('a page whose way down is made free by dropping what it hangs from goes with that', async () => {
  const manager = new KvCacheManager({
    config: defineCacheConfig(model([full()], { ...tight, slots: 2, hostSlots: 1 })),
    device: new HostPageDevice(),
    debugChecks: true,
    eviction: 'lru',
  });
  const serve = async (tokens: readonly number[], priority?: (ordinal: number) => number) => {
    const cache = manager.createKvCache({ priority });
    expect(await cache.resume()).toBe(true);
    expect(cache.resize(tokens.length)).toBe(true);
    cache.commit(tokens);
    cache.close();
    await manager.settled();
  };
  const slots = (tier: number) => manager.storageStatistics(tier)[0];
  await serve(text(1, 8), (ordinal) => (ordinal === 0 ? 10 : 50));
  // The beginning is worth less, so it goes to the host alone.
  await serve(text(2, 4), () => 60);
  expect([manager.probeReuse(text(1, 8)), slots(1).free]).toEqual([8, 0]);
  await serve(text(3, 4), () => 70);
  expect([text(1, 8), text(2, 4), text(3, 4)].map((tokens) => manager.probeReuse(tokens))).toEqual([0, 4, 4]);
  expect([slots(0), slots(1)].map(({ free, evictable, total }) => free + evictable === total)).toEqual([true, true]);
  await manager.close();
});

test('a page that has not arrived in the host goes no further: it is dropped, and nobody reads what is not there', async () => {
  const device = new QueueLog();
  const stage = new Stage(model([full()], { ...tight, slots: 4, hostSlots: 4, diskSlots: 16 }), device);
  await stage.donate(text(1, 16), [16]);
  device.holdsReads = true;
  await stage.donate(text(2, 16), [16]);
  expect(stage.used(0)).toEqual([4, 4, 0]);
  await stage.donate(text(3, 16), [16]);
  device.holdsReads = false;
  await device.landReads();
  await stage.manager.settled();
  for (const name of [1, 2, 3]) {
    const prompt = [...text(name, 12), 5];
    const reader = await stage.start(prompt);
    expect(reader.extend(prompt.slice(reader.numComputed))).toBe(true);
    reader.close();
    await stage.manager.settled();
  }
  await stage.finish();
});

test('bytes under way stay within their budget, however many tiers pass their pages on at once', async () => {
  for (const stagedPages of [2, 3, 5, 9]) {
    const config = model([full()], { ...tight, slots: 8, hostSlots: 8, diskSlots: 64 });
    const device = new QueueLog();
    const stage = new Stage(config, device, { stagingBytes: stagedPages * (2 << 17) });
    const { staging } = stateOf(stage.manager).storage;
    const players = [];
    for (const name of [1, 2, 3]) {
      const player = await stage.start();
      device.holdsReads = true;
      for (let count = 4; count <= 32; count += 4) {
        for (let tries = 0; !player.extend(text(name, count).slice(player.numComputed)); tries++) {
          expect(tries).toBeLessThan(4);
          await device.landReads();
          await stage.manager.settled();
        }
        expect(staging.free).toBeGreaterThanOrEqual(0);
      }
      device.holdsReads = false;
      await device.landReads();
      await stage.manager.settled();
      player.suspend();
      players.push(player);
    }
    for (const player of players) {
      expect(await player.resume()).toBe(true);
      expect(staging.free).toBeGreaterThanOrEqual(0);
      player.close();
      await stage.manager.settled();
    }
    await stage.finish();
  }
});
