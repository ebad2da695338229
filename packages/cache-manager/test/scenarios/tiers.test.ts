import { defineCacheConfig } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { HostPageDevice, HostPoolMemory, KvCacheManager, type PoolSpec } from '../../src/index.ts';
import { scenario } from '../support/scenario.ts';
import { full, GRAIN_BYTES, model, recurrent, Stage, seq, windowed } from '../support/stage.ts';

/** Tokens that no other text begins with. */
const text = (name: number, count: number) => seq(count).map((token) => name * 1000 + token);

describe('a suspended request gives way', () => {
  scenario(
    'its pages go to the host and come back whole',
    model([full()], { slots: 8, hostSlots: 8, maxUtilForResume: 1 }),
    async (stage) => {
      const first = await stage.start();
      expect(first.extend(text(1, 30))).toBe(true);
      first.suspend();
      const second = await stage.start();
      expect(second.extend(text(2, 30))).toBe(true);
      await stage.manager.settled();
      expect(stage.used(0)).toEqual([8, 8]);
      expect(stage.traffic(0)).toMatchObject({ offloaded: 8, dropped: 0 });
      second.close();
      expect(await first.resume()).toBe(true);
      expect(stage.traffic(0)).toMatchObject({ onboarded: 8 });
      expect(first.extend(text(1, 2))).toBe(true);
    },
  );

  scenario(
    'as long as there is room for it; a longer one is refused',
    model([full()], { slots: 8, hostSlots: 8, diskSlots: 8 }),
    async (stage) => {
      const first = await stage.start();
      expect(first.extend(text(1, 28))).toBe(true);
      first.suspend();
      const second = await stage.start();
      expect(second.extend(text(2, 28))).toBe(true);
      expect(second.extend(text(2, 8))).toBe(false);
      expect(second.extend(text(2, 4))).toBe(true);
    },
  );

  scenario(
    'down to the disk, through the host',
    model([full()], { slots: 8, hostSlots: 8, diskSlots: 8, maxUtilForResume: 1 }),
    async (stage) => {
      const players = [];
      for (const name of [1, 2, 3]) {
        const player = await stage.start();
        expect(player.extend(text(name, 32))).toBe(true);
        if (name < 3) player.suspend();
        await stage.manager.settled();
        players.push(player);
      }
      expect(stage.used(0)).toEqual([8, 8, 8]);
      expect(await players[0].resume()).toBe(false);
      players[2].close();
      expect(await players[0].resume()).toBe(true);
      players[0].close();
      expect(await players[1].resume()).toBe(true);
    },
  );

  scenario(
    'but not where every tier is full of held pages, and nothing has changed then',
    model([recurrent()], { slots: 4, hostSlots: 2, maxUtilForResume: 1 }),
    async (stage) => {
      const total = stage.slots(0).total + stage.slots(0, 1).total;
      const players = [];
      for (let name = 0; name < total; name++) {
        const player = await stage.start();
        expect(player.step(text(name, 4))).toBe(true);
        player.suspend();
        players.push(player);
        await stage.manager.settled();
      }
      const before = [stage.slots(0), stage.slots(0, 1)];
      expect(await stage.open().resume()).toBe(false);
      expect(await players[0].resume()).toBe(false);
      expect([stage.slots(0), stage.slots(0, 1)]).toEqual(before);
    },
  );
});

describe('admission', () => {
  scenario(
    'state that fills its pool does not keep a request out while a slot can be had',
    model([full(), recurrent()], { slots: [32, 4], hostSlots: 2, maxUtilForResume: 0.5 }),
    async (stage) => {
      const { total } = stage.slots(1);
      for (let name = 0; name < total - 1; name++) expect((await stage.start()).step(text(name, 2))).toBe(true);
      expect(stage.slots(1).free).toBe(1);
      await stage.start();
    },
  );

  scenario(
    'the snapshot that a request starts from is not the one evicted for it, though its priority is the lowest',
    model([recurrent()], { slots: 2, hostSlots: 1, maxUtilForResume: 1 }),
    async (stage) => {
      await stage.donate(text(1, 4), [4], { end: true, priority: () => 0 });
      await stage.donate(text(2, 4), [4], { end: true, priority: () => 100 });
      const others = stage.slots(0).total - 2;
      for (let name = 0; name < others; name++) expect((await stage.start()).step(text(name + 10, 2))).toBe(true);
      const reader = stage.open(text(1, 6));
      expect(reader.kv.numCommittedTokens).toBe(4);
      expect(await reader.resume()).toBe(true);
      expect(stage.traffic(0).offloaded).toBe(1);
    },
  );

  scenario(
    'a request that fits alone gets back onto the device, whatever share of it that takes',
    model([full()], { slots: 8 }),
    async (stage) => {
      const player = await stage.start();
      expect(player.extend(text(1, 32))).toBe(true);
      player.suspend();
      expect(await player.resume()).toBe(true);
    },
  );

  scenario(
    'two that were taken off at the same time get back one after the other',
    model([full()], { slots: 8, hostSlots: 8 }),
    async (stage) => {
      const [a, b] = [await stage.start(), await stage.start()];
      expect(a.extend(text(1, 16)) && b.extend(text(2, 16))).toBe(true);
      a.suspend();
      b.suspend();
      const c = await stage.start();
      expect(c.extend(text(3, 32))).toBe(true);
      c.close();
      expect(await Promise.all([a.resume(), b.resume()])).toEqual([true, true]);
      a.verify();
      b.verify();
    },
  );
});

describe('counts', () => {
  scenario(
    'pages that go down, come back and go for good',
    model([full()], { slots: 2, hostSlots: 2, maxUtilForResume: 1 }),
    async (stage) => {
      const takeAll = async () => {
        const taker = await stage.start();
        expect(taker.step(text(9, 8))).toBe(true);
        taker.close();
        await stage.manager.settled();
      };
      await stage.donate(text(1, 8), [8]);
      await takeAll();
      expect(stage.traffic(0)).toEqual({ offloaded: 2, onboarded: 0, dropped: 0, lost: 0 });
      const reader = await stage.start(text(1, 8));
      expect(stage.traffic(0)).toEqual({ offloaded: 2, onboarded: 2, dropped: 0, lost: 0 });
      reader.close();
      await takeAll();
      expect(stage.traffic(0)).toEqual({ offloaded: 4, onboarded: 2, dropped: 0, lost: 0 });
      await stage.donate(text(2, 8), [8]);
      await takeAll();
      expect(stage.traffic(0)).toEqual({ offloaded: 6, onboarded: 2, dropped: 2, lost: 0 });
      const { counts } = stage.manager.statistics().groups[0];
      const pageBytes = stage.slots(0).total * 0 + stage.manager.storageStatistics(0)[0].slotBytes;
      expect([counts.offloadedBytes, counts.onboardedBytes, counts.droppedBytes]).toEqual(
        [6, 2, 2].map((pages) => pages * pageBytes),
      );
      expect([stage.probe(text(1, 8)), stage.probe(text(2, 8))]).toEqual([0, 8]);
    },
  );

  scenario(
    'the most slots that were to be had in each tier, and not',
    model([full()], { slots: 2, hostSlots: 1, maxUtilForResume: 1 }),
    async (stage) => {
      const peaks = () => [0, 1].map((tier) => stage.manager.takePeakStatistics(tier)[0]);
      const first = await stage.start();
      expect(first.step(text(1, 8))).toBe(true);
      first.suspend();
      await stage.manager.settled();
      const second = await stage.start();
      expect(second.step(text(2, 4))).toBe(true);
      await stage.manager.settled();
      second.close();
      expect(peaks()).toEqual([
        { available: 2, unavailable: 2, evictable: 2 },
        { available: 1, unavailable: 1, evictable: 0 },
      ]);
      expect(peaks()).toEqual([
        { available: 2, unavailable: 0, evictable: 1 },
        { available: 0, unavailable: 1, evictable: 0 },
      ]);
    },
  );

  scenario(
    'attention and state of a request that gave way and came back',
    model([full(), recurrent()], { slots: [3, 2], hostSlots: 3, maxUtilForResume: 1 }),
    async (stage) => {
      const first = await stage.start();
      expect(first.extend(text(1, 12))).toBe(true);
      first.suspend();
      const others = [];
      for (let name = 1; name < stage.slots(1).total; name++) others.push(await stage.start());
      const second = await stage.start();
      expect(second.step(text(2, 12))).toBe(true);
      await stage.manager.settled();
      expect([stage.traffic(0).offloaded, stage.traffic(1).offloaded > 0]).toEqual([3, true]);
      for (const player of [...others, second]) player.close();
      expect(await first.resume()).toBe(true);
      expect(stage.traffic(0)).toMatchObject({ onboarded: 3 });
      expect(stage.traffic(1).onboarded).toBeGreaterThan(0);
    },
  );

  scenario(
    'nothing that is not needed among what comes back',
    model([full(), windowed(4), windowed(8)], { slots: 16, hostSlots: 16 }),
    async (stage) => {
      await stage.donate(text(1, 12), [12]);
      const other = await stage.start();
      expect(other.extend(text(2, 64))).toBe(true);
      await stage.manager.settled();
      expect([0, 1, 2].map((group) => stage.traffic(group).offloaded)).toEqual([3, 3, 3]);
      other.close();
      const reader = await stage.start([...text(1, 12), 5]);
      expect(reader.kv.numCommittedTokens).toBe(12);
      expect([0, 1, 2].map((group) => stage.traffic(group).onboarded)).toEqual([3, 1, 2]);
    },
  );
});

describe('quotas', () => {
  const PAGE = GRAIN_BYTES / 8;

  /** Eleven sequences of seven pages through all tiers, the last two of them suspended. */
  async function crowd() {
    const config = model([full()], { slots: 8, hostSlots: 32, diskSlots: 32, maxUtilForResume: 1 });
    const tiers = [{ tier: 'device' as const, quota: 16 * PAGE }, ...config.tiers.slice(1)];
    const stage = new Stage({ ...config, tiers });
    for (let name = 1; name <= 9; name++) {
      await stage.donate(text(name, 28), [28]);
      await stage.manager.settled();
    }
    const suspended = [];
    for (const name of [10, 11]) {
      const player = await stage.start();
      expect(player.extend(text(name, 28))).toBe(true);
      player.suspend();
      suspended.push(player);
    }
    await stage.manager.settled();
    const resize = (tier: number, pages: number) => stage.manager.resizeTier(tier, pages * PAGE);
    return { stage, first: suspended[0], second: suspended[1], resize };
  }

  test('shrink around two suspended requests, of which one resumes; grow, and prefetch lets both resume', async () => {
    const { stage, first, second, resize } = await crowd();
    expect(stage.used(0).map((used) => used > 0)).toEqual([true, true, true]);
    expect([await resize(0, 8), await resize(1, 4), await resize(2, 8)]).toEqual([true, true, true]);
    await stage.manager.settled();
    expect([0, 1, 2].map((tier) => stage.slots(0, tier).total)).toEqual([8, 4, 8]);
    expect(await first.resume()).toBe(true);
    expect(await second.resume()).toBe(false);
    first.suspend();

    expect([await resize(0, 16), await resize(1, 32), await resize(2, 32)]).toEqual([true, true, true]);
    const [onDevice] = stage.used(0);
    expect(await second.kv.prefetch(1)).toBe(true);
    await stage.manager.settled();
    expect(stage.used(0)).toEqual([onDevice, stage.used(0)[1], 0]);
    const waiting = [0, 1].map((tier) => stage.slots(0, tier).evictable);
    expect(waiting).toEqual(stage.used(0).slice(0, 2));
    expect([await first.resume(), await second.resume()]).toEqual([true, true]);
    first.verify();
    second.verify();
    await stage.finish();
  });

  test('that cannot hold what is held are refused, and nothing has changed', async () => {
    const { stage, first, second, resize } = await crowd();
    expect([await first.resume(), await second.resume()]).toEqual([true, true]);
    const before = [0, 1, 2].map((tier) => stage.manager.storageStatistics(tier));
    expect(await resize(0, 8)).toBe(false);
    expect([0, 1, 2].map((tier) => stage.manager.storageStatistics(tier))).toEqual(before);
    await stage.finish();
  });

  test('below what every pool group must have are refused', async () => {
    const stage = new Stage(model([full(), windowed(64)], { slots: 32, hostSlots: 32 }));
    expect(await stage.manager.resizeTier(0, 1)).toBe(false);
    expect(await stage.manager.resizeTier(1, 1)).toBe(false);
    await stage.finish();
  });

  test('that are none, or of a tier that is none, are refused with an error', async () => {
    const stage = new Stage(model([full()], { hostSlots: 4 }));
    await expect(stage.manager.resizeTier(2, PAGE)).rejects.toMatchObject({ code: 'unknown-tier' });
    await expect(stage.manager.resizeTier(1, 0)).rejects.toMatchObject({ code: 'invalid-quota' });
    await stage.finish();
    await expect(stage.manager.resizeTier(1, PAGE)).rejects.toMatchObject({ code: 'manager-closed' });
  });

  test('for which the device has no memory are refused, and the pools are what they were', async () => {
    const { stage, first } = await crowd();
    expect(await first.resume()).toBe(true);
    Object.assign(stage.device, {
      createPool: (spec: PoolSpec) => Object.assign(new HostPoolMemory(spec), { ready: Promise.reject(new Error('no memory')) }),
    });
    expect(await stage.manager.resizeTier(0, 24 * PAGE)).toBe(false);
    expect(stage.slots(0).total).toBe(16);
    first.verify();
    await stage.finish();
  });
});

describe('prefetch', () => {
  scenario(
    'needs room for all of it, else every page stays where it is',
    model([full()], { slots: 8, hostSlots: 8, diskSlots: 8, maxUtilForResume: 1 }),
    async (stage) => {
      const players = [];
      for (const name of [1, 2, 3]) {
        const player = await stage.start();
        expect(player.extend(text(name, 32))).toBe(true);
        if (name < 3) player.suspend();
        players.push(player);
        await stage.manager.settled();
      }
      expect(stage.used(0)).toEqual([8, 8, 8]);
      expect(await players[0].kv.prefetch(1)).toBe(false);
      expect(stage.used(0)).toEqual([8, 8, 8]);
      players[1].close();
      expect(await players[0].kv.prefetch(1)).toBe(true);
      expect([stage.used(0)[1], stage.slots(0, 1).evictable]).toEqual([8, 8]);
      players[2].close();
      expect(await players[0].kv.prefetch(0)).toBe(true);
      expect(stage.traffic(0).onboarded).toBe(8);
      expect(await players[0].resume()).toBe(true);
      expect(stage.traffic(0).onboarded).toBe(8);
    },
  );

  scenario('is for suspended requests, and tiers that are there', model([full()], { slots: 8, hostSlots: 8 }), async (stage) => {
    const player = await stage.start();
    await expect(player.kv.prefetch(1)).rejects.toMatchObject({ code: 'prefetch-active' });
    player.close();
    await expect(player.kv.prefetch(1)).rejects.toMatchObject({ code: 'prefetch-closed' });
    await expect(stage.open().kv.prefetch(2)).rejects.toMatchObject({ code: 'unknown-tier' });
    expect(await stage.open().kv.prefetch(0)).toBe(true);
  });
});

test('a disk tier needs a store', () => {
  const config = defineCacheConfig(model([full()], { diskSlots: 4 }));
  expect(() => new KvCacheManager({ config, device: new HostPageDevice() })).toThrow(
    expect.objectContaining({ code: 'no-disk-store' }),
  );
});

scenario(
  'a page of one pool group comes back whole, though it lies in several pools',
  model([{ ...full(), roles: ['key', 'value', 'norm'] }, recurrent()], {
    slots: [8, 2],
    hostSlots: 8,
    diskSlots: 8,
    maxUtilForResume: 1,
  }),
  async (stage) => {
    const first = await stage.start();
    expect(first.extend(text(1, 32))).toBe(true);
    first.suspend();
    const second = await stage.start();
    expect(second.step(text(2, 32))).toBe(true);
    second.close();
    expect(await first.resume()).toBe(true);
  },
);
