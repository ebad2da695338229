import { expect, test } from 'vitest';
import { type KvCacheManager, MemoryTierStore } from '../../src/index.ts';
import { FaultyDevice } from '../support/faulty-device.ts';
import { moveSlots } from '../support/move-slots.ts';
import { full, GRAIN_BYTES, model, recurrent, Stage, seq, windowed } from '../support/stage.ts';

/** Tokens that no other text begins with. */
const text = (name: number, count: number) => seq(count).map((token) => name * 1000 + token);
const totals = (manager: KvCacheManager, tier = 0) => manager.storageStatistics(tier).map(({ total }) => total);

/** Full attention with 8 slots a grain and state with 8 slots in two, with so many grains for each. */
function split(attention: number, state: number) {
  const config = model([full(), recurrent()], { slots: [8, 8], maxUtilForResume: 1 });
  const tiers = [{ tier: 'device' as const, quota: (attention + state) * GRAIN_BYTES }];
  return { ...config, tiers, initialPoolRatio: [attention, state] };
}

/** Texts of three blocks that come round again and again. */
async function serveRounds(stage: Stage, numTexts: number, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (let name = 1; name <= numTexts; name++) {
      const reader = await stage.start(text(name, 13));
      reader.extend(text(name, 13).slice(reader.numComputed), { snapshot: true });
      reader.close();
    }
  }
}

test('attention that evicts what is asked for again takes the room that state leaves idle, and the hits come', async () => {
  const stage = new Stage(split(2, 16));
  const { manager } = stage;
  expect(manager.needsRebalance).toBe(false);
  await serveRounds(stage, 8, 3);
  const plan = manager.rebalancePlan();
  expect(plan).toMatchObject({ tier: 0, needed: true, reason: 'idle', unit: 'tokens', move: { from: 1, to: 0 } });
  expect(manager.needsRebalance).toBe(true);
  const before = totals(manager);
  expect(await manager.rebalance()).toBe(true);
  expect(totals(manager)).toEqual(plan.groups.map(({ proposedSlots }) => proposedSlots));
  expect(totals(manager)[0]).toBeGreaterThan(before[0]);
  while (manager.needsRebalance) expect(await manager.rebalance()).toBe(true);
  manager.takeRequestStatistics();
  await serveRounds(stage, 8, 3);
  expect(manager.takeRequestStatistics().hitRate).toBeGreaterThan(0.5);
  expect(manager.rebalancePlan()).toMatchObject({ needed: false, reason: 'balanced', move: null });
  await stage.finish();
});

test('with nothing to move a call says false and changes nothing, and so with one pool group', async () => {
  for (const config of [split(8, 8), model([full()], { slots: 4 })]) {
    const stage = new Stage(config);
    const before = totals(stage.manager);
    await stage.donate(text(1, 9), [9]);
    expect(await stage.manager.rebalance()).toBe(false);
    expect(totals(stage.manager)).toEqual(before);
    expect(() => stage.manager.rebalancePlan(1)).toThrow(expect.objectContaining({ code: 'unknown-tier' }));
    await stage.finish();
  }
});

test('a group short of slots for requests gets them, and they go on', async () => {
  const stage = new Stage(split(14, 4));
  const { manager } = stage;
  const players = [];
  for (let name = 1; ; name++) {
    const player = stage.open(text(name, 5));
    if (!(await player.resume())) break;
    expect(player.extend(text(name, 4))).toBe(true);
    players.push(player);
  }
  expect(players.length).toBe(16);
  expect(manager.rebalancePlan()).toMatchObject({ reason: 'requests', move: { from: 0, to: 1 } });
  expect(await manager.rebalance()).toBe(true);
  for (const player of players) player.verify();
  expect(await stage.open(text(99, 5)).resume()).toBe(true);
  await stage.finish();
});

test('active requests go on in other slots, and suspended ones come back', async () => {
  const stage = new Stage(model([full(), windowed(8)], { slots: 32, hostSlots: 64, maxUtilForResume: 1 }));
  const { manager } = stage;
  const [active, suspended] = [await stage.start(), await stage.start()];
  for (let name = 1; name <= 4; name++) await stage.donate(text(name, 16), [16]);
  expect(active.extend(text(8, 21))).toBe(true);
  expect(suspended.extend(text(9, 30))).toBe(true);
  suspended.suspend();
  const memories = [0, 1].map((layer) => manager.poolMemory(layer, 'kv'));
  const { groups } = manager.rebalancePlan();
  expect(groups[0].floor).toBeGreaterThanOrEqual(8 + 1);
  const slots = [groups[0].floor, groups[1].slots + 20];
  expect(await moveSlots(manager, 0, { from: 0, to: 1, slots })).toBe(true);
  expect(totals(manager)).toEqual(slots);
  for (const [layer, memory] of memories.entries()) expect(manager.poolMemory(layer, 'kv')).not.toBe(memory);
  active.verifyAll();
  active.suspend();
  expect(await suspended.resume()).toBe(true);
  suspended.verifyAll();
  await stage.finish();
});

test.each(['createPool', 'ready'] as const)(
  'when the device fails at %s the answer is false, all is where it was, and it is not tried again at once',
  async (fault) => {
    const device = new FaultyDevice(fault, 0);
    const stage = new Stage(split(2, 16), device);
    const { manager } = stage;
    await serveRounds(stage, 8, 3);
    const reader = await stage.start(text(1, 13));
    const before = manager.storageStatistics(0);
    device.failNext();
    expect(await manager.rebalance()).toBe(false);
    expect(device.hasFailed).toBe(true);
    expect(manager.storageStatistics(0)).toEqual(before);
    expect(manager.needsRebalance).toBe(false);
    reader.verifyAll();
    await serveRounds(stage, 8, 3);
    expect(await manager.rebalance()).toBe(true);
    reader.verifyAll();
    await stage.finish();
  },
);

test('a pool group that is not part of a move keeps its memory', async () => {
  const stage = new Stage(model([full(), windowed(8), windowed(16)], { slots: 32 }));
  const memory = stage.manager.poolMemory(2, 'kv');
  expect(await moveSlots(stage.manager, 0, { from: 0, to: 1, slots: [24, 40, 32] })).toBe(true);
  expect(stage.manager.poolMemory(2, 'kv')).toBe(memory);
  await stage.finish();
});

test('another quota is divided as the tier was last, not as it was planned', async () => {
  const stage = new Stage(split(8, 8));
  const slots = totals(stage.manager);
  expect(await moveSlots(stage.manager, 0, { from: 1, to: 0, slots: [slots[0] + 32, slots[1] - 16] })).toBe(true);
  const [attention, state] = totals(stage.manager);
  expect(await stage.manager.resizeTier(0, 32 * GRAIN_BYTES)).toBe(true);
  expect(totals(stage.manager)).toEqual([attention * 2, state * 2]);
  expect(await stage.manager.resizeTier(0, 16 * GRAIN_BYTES)).toBe(true);
  expect(totals(stage.manager)).toEqual([attention, state]);
  await stage.finish();
});

test('colder tiers are divided by what comes back from behind them, in bytes', async () => {
  const config = model([full(), windowed(4)], { slots: [16, 16], hostSlots: 16, diskSlots: 200, maxUtilForResume: 1 });
  const stage = new Stage(config, undefined, { disk: new MemoryTierStore() });
  const { manager } = stage;
  for (let round = 0; round < 6; round++) {
    for (let name = 1; name <= 10; name++) {
      const reader = await stage.start(text(name, 13));
      reader.extend(text(name, 13).slice(reader.numComputed));
      reader.close();
      await manager.settled();
    }
  }
  const plan = manager.rebalancePlan(1);
  expect(plan.unit).toBe('bytes');
  expect(manager.rebalancePlan(2).unit).toBe('tokens');
  expect(plan.groups.some(({ gains }) => gains.some((gain) => gain > 0))).toBe(true);
  const before = [0, 1, 2].map((tier) => totals(manager, tier));
  const moved = await manager.rebalance();
  expect([0, 1, 2].map((tier) => totals(manager, tier)).join() !== before.join()).toBe(moved);
  await stage.finish();
});

test('a closed manager, or one asked from a priority function, says so', async () => {
  const stage = new Stage(split(4, 4));
  await stage.finish();
  expect(() => stage.manager.rebalancePlan()).toThrow(expect.objectContaining({ code: 'manager-closed' }));
  await expect(stage.manager.rebalance()).rejects.toMatchObject({ code: 'manager-closed' });
  expect(stage.manager.needsRebalance).toBe(false);
});
