import { expect, test } from 'vitest';
import { type KvCache, MemoryTierStore } from '../../src/index.ts';
import { checkInvariants } from '../../src/testing/index.ts';
import { FailingStore, UnreadableDevice } from '../support/failing-tiers.ts';
import { QueueLog } from '../support/queue-log.ts';
import { scenario } from '../support/scenario.ts';
import { full, GRAIN_BYTES, model, recurrent, Stage, seq, windowed } from '../support/stage.ts';

/** Tokens that no other text begins with. */
const text = (name: number, count: number) => seq(count).map((token) => name * 1000 + token);
const indices = (kv: KvCache, group = 0) => [...kv.basePageIndices(group as never)];

/** A config of one full layer whose device tier can have one grain of eight slots, or several. */
function grains(count: number, hostSlots = 32) {
  const config = model([full()], { slots: 8, hostSlots, maxUtilForResume: 1 });
  return { ...config, tiers: [{ tier: 'device' as const, quota: count * GRAIN_BYTES }, ...config.tiers.slice(1)] };
}

scenario(
  'room for pages from elsewhere is never made of the ones that were found',
  model([full(), windowed(8)], { slots: [8, 4], hostSlots: 2, maxUtilForResume: 1 }),
  async (stage) => {
    await stage.donate(text(1, 16), [16]);
    const reader = await stage.start([...text(1, 16), 7]);
    expect(reader.kv.numCommittedTokens).toBe(16);
    const before = [0, 1].map((group) => indices(reader.kv, group));
    // Sixteen tokens more take four pages of each group; the window has two left, and none to give.
    expect(reader.step(text(2, 16))).toBe(stage.slots(1).total >= 6);
    expect([0, 1].map((group) => indices(reader.kv, group).slice(0, 4))).toEqual(before);
    reader.verify();
  },
);

scenario(
  'held pages of the last tier stay, however often they are asked for, and however often a holder leaves',
  model([full()], { slots: 4, hostSlots: 4, maxUtilForResume: 1 }),
  async (stage) => {
    await stage.donate(text(1, 16), [16]);
    const first = stage.open([...text(1, 16), 1]);
    const second = stage.open([...text(1, 16), 2]);
    const taker = await stage.start();
    expect(taker.extend(text(2, 16))).toBe(true);
    await stage.manager.settled();
    expect([stage.used(0), stage.slots(0, 1).evictable]).toEqual([[4, 4], 0]);
    taker.suspend();
    const other = await stage.start();
    expect(other.step(text(3, 4))).toBe(false);
    first.close();
    first.close();
    expect(other.step(text(3, 4))).toBe(false);
    expect(stage.traffic(0).dropped).toBe(0);
    second.close();
    expect(other.step(text(3, 16))).toBe(true);
    expect(stage.traffic(0).dropped).toBe(4);
  },
);

test('what is pushed through a small disk leaves the newest there, and no more than fits', async () => {
  const disk = new MemoryTierStore();
  const stage = new Stage(model([full()], { slots: 4, hostSlots: 4, diskSlots: 8, maxUtilForResume: 1 }), undefined, { disk });
  const { quota } = stage.config.tiers[2];
  const pageBytes = stage.manager.storageStatistics(2)[0].slotBytes;
  for (let name = 0; name < 30; name++) {
    await stage.donate(text(name, 16), [16]);
    await stage.manager.settled();
    expect(disk.storedBytes).toBeLessThanOrEqual(quota);
    expect(disk.storedBytes).toBe(stage.used(0)[2] * pageBytes);
  }
  expect(stage.used(0)[2]).toBe(stage.slots(0, 2).total);
  const newest = Array.from({ length: 30 }, (_, name) => stage.probe(text(name, 16)));
  expect(newest.slice(-4)).toEqual([16, 16, 16, 16]);
  expect(newest.slice(0, 20)).toEqual(new Array(20).fill(0));
  expect(stage.traffic(0).dropped).toBeGreaterThan(50);
  await stage.finish();
});

test('indices name the slots of now, after pages went and came back, and after pools grew', async () => {
  const stage = new Stage(grains(2));
  await stage.donate(text(1, 16), [16]);
  const [a, b] = [await stage.start([...text(1, 16), 1]), await stage.start([...text(1, 16), 2])];
  expect(a.extend(text(2, 16)) && b.extend(text(3, 12))).toBe(true);
  a.suspend();
  const shared = indices(b.kv).slice(0, 4);
  const taker = await stage.start();
  expect(taker.step(text(4, 32))).toBe(true);
  await stage.manager.settled();
  expect(stage.traffic(0).offloaded).toBeGreaterThan(0);
  expect(indices(b.kv).slice(0, 4)).toEqual(shared);
  taker.close();
  expect(await a.resume()).toBe(true);
  expect(indices(a.kv).slice(0, 4)).toEqual(shared);
  a.suspend();
  b.suspend();
  expect(await stage.manager.resizeTier(0, 3 * GRAIN_BYTES)).toBe(true);
  expect(stage.slots(0).total).toBe(24);
  expect((await a.resume()) && (await b.resume())).toBe(true);
  expect(indices(a.kv).slice(0, 4)).toEqual(indices(b.kv).slice(0, 4));
  expect(new Set([...indices(a.kv), ...indices(b.kv)]).size).toBe(4 + 4 + 3);
  await stage.finish();
});

test('an active request goes on in a smaller pool, its pages in lower slots', async () => {
  const stage = new Stage(grains(2));
  const [low, high] = [await stage.start(), await stage.start()];
  expect(low.extend(text(1, 32)) && high.extend(text(2, 16))).toBe(true);
  const kept = high.kv.basePageIndices(0 as never);
  expect(Math.max(...kept)).toBeGreaterThanOrEqual(8);
  low.close();
  expect(await stage.manager.resizeTier(0, GRAIN_BYTES)).toBe(true);
  await stage.manager.settled();
  expect(stage.slots(0)).toMatchObject({ total: 8 });
  expect(Math.max(...kept)).toBeLessThan(8);
  high.verifyAll();
  expect(high.extend(text(2, 16))).toBe(true);
  expect(await stage.manager.resizeTier(0, 2 * GRAIN_BYTES)).toBe(true);
  high.verifyAll();
  await stage.finish();
});

test('a pool does not shrink below what active requests use, and nothing has changed', async () => {
  const stage = new Stage(grains(2));
  const player = await stage.start();
  expect(player.extend(text(1, 36))).toBe(true);
  const before = indices(player.kv);
  const pools = stage.device.pools.length;
  expect(await stage.manager.resizeTier(0, GRAIN_BYTES)).toBe(false);
  expect([stage.slots(0).total, indices(player.kv)]).toEqual([16, before]);
  expect(stage.device.pools.slice(pools).map(({ bytes }) => bytes.length)).toEqual([0]);
  player.suspend();
  expect(await stage.manager.resizeTier(0, GRAIN_BYTES)).toBe(true);
  // Nine pages do not fit into eight slots, so it stays where it is until there are more.
  expect(await player.resume()).toBe(false);
  expect(await stage.manager.resizeTier(0, 2 * GRAIN_BYTES)).toBe(true);
  expect(await player.resume()).toBe(true);
  await stage.finish();
});

test('slots that were never used go at once, and used ones in a row with them', async () => {
  const stage = new Stage(model([full()], { slots: 512, hostSlots: 4096 }));
  const pageBytes = stage.manager.storageStatistics(1)[0].slotBytes;
  expect(await stage.manager.resizeTier(1, 1024 * pageBytes)).toBe(true);
  expect(stage.slots(0, 1)).toEqual({ free: 1024, evictable: 0, total: 1024 });
  await stage.finish();
});

test('pages that lie beyond the new end of the host are carried below it', async () => {
  const stage = new Stage(model([full()], { slots: 8, hostSlots: 16, maxUtilForResume: 1 }));
  const pageBytes = stage.manager.storageStatistics(1)[0].slotBytes;
  const players = [];
  for (const name of [1, 2]) {
    const player = await stage.start();
    expect(player.extend(text(name, 32))).toBe(true);
    player.suspend();
    players.push(player);
  }
  const taker = await stage.start();
  expect(taker.step(text(3, 32))).toBe(true);
  await stage.manager.settled();
  expect(stage.used(0)).toEqual([8, 16]);
  players[0].close();
  stage.manager.storageStatistics(1);
  expect(await stage.manager.resizeTier(1, 8 * pageBytes)).toBe(true);
  expect(stage.used(0)[1]).toBe(8);
  expect(await stage.manager.resizeTier(1, 4 * pageBytes)).toBe(false);
  taker.close();
  expect(await players[1].resume()).toBe(true);
  await stage.finish();
});

test('a page is read in the order of the queue: behind the kernels that wrote it, before those that write its slot again', async () => {
  const device = new QueueLog();
  const stage = new Stage(model([full(), recurrent()], { slots: [4, 3], hostSlots: 8, maxUtilForResume: 1 }), device);
  const first = await stage.start();
  expect(first.kv.resize(16, 0)).toBe(true);
  device.note('kernel of the first');
  first.compute(text(1, 16));
  first.commit();
  first.suspend();
  const second = await stage.start();
  expect(second.kv.resize(16, 0)).toBe(true);
  device.note('kernel of the second');
  second.compute(text(2, 16));
  const order = device.entries.filter((entry) => entry.startsWith('kernel') || entry === 'read 4');
  expect(order).toEqual(['kernel of the first', 'read 4', 'kernel of the second']);
  second.close();
  expect(await first.resume()).toBe(true);
  await stage.finish();
});

test('a step does not wait: the slot is free while its page is still on the way, and whoever wants the page waits for it', async () => {
  const device = new QueueLog();
  const stage = new Stage(model([full()], { slots: 4, hostSlots: 4, maxUtilForResume: 1 }), device);
  const first = await stage.start();
  expect(first.extend(text(1, 16))).toBe(true);
  first.suspend();
  device.holdsReads = true;
  const second = await stage.start();
  expect(second.extend(text(2, 16))).toBe(true);
  expect([stage.used(0), stage.slots(0, 1).evictable]).toEqual([[4, 4], 0]);
  second.close();
  let isBack = false;
  const resumed = first.resume().then((answer) => {
    isBack = true;
    return answer;
  });
  for (let i = 0; i < 50; i++) await Promise.resolve();
  expect(isBack).toBe(false);
  checkInvariants(stage.manager);
  await device.landReads();
  expect(await resumed).toBe(true);
  device.holdsReads = false;
  await stage.finish();
});

test('when too much is on the way, what nobody holds is dropped, and what somebody holds makes no room', async () => {
  const device = new QueueLog();
  // Two pages may be under way.
  const stage = new Stage(model([full()], { slots: 4, hostSlots: 16, maxUtilForResume: 1 }), device, { stagingBytes: 1 });
  device.holdsReads = true;
  await stage.donate(text(1, 16), [16]);
  const suspended = await stage.start();
  expect(suspended.extend(text(2, 16))).toBe(true);
  expect([stage.traffic(0).offloaded, stage.probe(text(1, 16)) > 0]).toEqual([2, true]);
  await device.landReads();
  suspended.suspend();
  const active = await stage.start();
  expect(active.step(text(3, 12))).toBe(false);
  expect(active.step(text(3, 8))).toBe(true);
  expect(stage.traffic(0).offloaded).toBe(4);
  await device.landReads();
  expect(active.step(text(3, 8))).toBe(true);
  device.holdsReads = false;
  await device.landReads();
  await stage.finish();
});

test('while a request comes back, another commits the same tokens: one set of pages is left', async () => {
  const device = new QueueLog();
  const stage = new Stage(model([full()], { slots: 12, hostSlots: 12, maxUtilForResume: 1 }), device);
  const twin = await stage.start();
  expect(twin.step(text(1, 16))).toBe(true);
  await stage.donate(text(1, 16), [16]);
  const reader = stage.open([...text(1, 16), 9]);
  device.holdsReads = true;
  const taker = await stage.start();
  expect(taker.step(text(2, 32))).toBe(true);
  expect(stage.traffic(0).offloaded).toBe(4);
  taker.close();
  const resumed = reader.resume();
  for (let i = 0; i < 50; i++) await Promise.resolve();
  // Its pages are the ones that are listed, on their way to the device: the twin keeps its own.
  twin.commit();
  twin.verifyAll();
  expect(stage.used(0)[0]).toBe(8);
  device.holdsReads = false;
  await device.landReads();
  expect(await resumed).toBe(true);
  twin.close();
  expect([stage.slots(0), stage.used(0)]).toEqual([{ free: 8, evictable: 0, total: 12 }, [4, 0]]);
  reader.close();
  const evictor = await stage.start();
  expect(evictor.step(text(3, 48))).toBe(true);
  await stage.manager.settled();
  expect(stage.probe(text(1, 16))).toBe(16);
  await stage.finish();
});

scenario(
  'whoever has just computed what lies in the host gives it back to the device, without a transfer',
  model([full()], { slots: 8, hostSlots: 8, maxUtilForResume: 1 }),
  async (stage) => {
    const twin = await stage.start();
    expect(twin.step(text(1, 16))).toBe(true);
    await stage.donate(text(1, 16), [16]);
    const taker = await stage.start();
    expect(taker.step(text(2, 16))).toBe(true);
    await stage.manager.settled();
    expect([stage.used(0), stage.traffic(0).offloaded]).toEqual([[8, 4], 4]);
    const before = indices(twin.kv);
    twin.commit();
    expect(indices(twin.kv)).toEqual(before);
    expect([stage.used(0), stage.traffic(0).onboarded]).toEqual([[8, 0], 0]);
    twin.close();
    taker.close();
    await stage.start([...text(1, 16), 9]);
  },
);

scenario(
  'a snapshot for which the device has no room is kept in the host',
  model([full(), recurrent()], { slots: [16, 2], hostSlots: 16, maxUtilForResume: 1 }),
  async (stage) => {
    const players = [];
    for (let name = 0; name < stage.slots(1).total; name++) players.push(await stage.start());
    expect(players[0].extend(text(1, 8))).toBe(true);
    expect(stage.manager.statistics().groups[1].missedSnapshots).toBe(0);
    for (const player of players) player.close();
    await stage.manager.settled();
    expect(stage.probe(text(1, 12))).toBe(8);
    const reader = await stage.start([...text(1, 8), 9]);
    expect(reader.kv.numCommittedTokens).toBe(8);
    expect(reader.extend([9])).toBe(true);
  },
);

scenario(
  'a request that stopped committing while it lay in the host goes on in copies, and others find what it stopped at',
  model([full(), recurrent()], { slots: [4, 2], hostSlots: 8, maxUtilForResume: 1 }),
  async (stage) => {
    const first = await stage.start();
    expect(first.extend(text(1, 10))).toBe(true);
    first.suspend();
    const taker = await stage.start();
    expect(taker.step(text(2, 16))).toBe(true);
    await stage.manager.settled();
    expect(stage.used(0)[1]).toBeGreaterThan(0);
    first.kv.stopCommitting();
    taker.close();
    expect(stage.probe([...text(1, 10), 5])).toBe(10);
    expect(await first.resume()).toBe(true);
    expect(first.step([77, 78])).toBe(true);
    first.close();
    const reader = await stage.start([...text(1, 10), 5]);
    expect(reader.kv.numCommittedTokens).toBe(10);
  },
);

scenario(
  'recurrent state that is fresh is zero, also in a slot whose page went to the host',
  model([recurrent()], { slots: 2, hostSlots: 2, maxUtilForResume: 1 }),
  async (stage) => {
    for (let name = 0; name < stage.slots(0).total; name++) {
      const player = await stage.start();
      expect(player.step(text(name, 3))).toBe(true);
      if (name === 0) player.suspend();
    }
    await stage.start();
    expect(stage.traffic(0).offloaded).toBe(1);
  },
);

// ── What fails ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** Three requests through device, host and disk; each is asked for again until it has what it lost. */
async function journey(stage: Stage): Promise<void> {
  const players = [];
  for (const name of [1, 2, 3]) {
    const player = await stage.start();
    expect(player.extend(text(name, 16))).toBe(true);
    player.suspend();
    players.push(player);
    await stage.manager.settled();
  }
  for (const [index, player] of players.entries()) {
    for (let tries = 0; player.kv.status === 'suspended'; tries++) {
      expect(tries).toBeLessThan(4);
      const answer = await player.resume().catch((error: unknown) => error);
      if ((answer as { code?: string }).code === 'pages-lost') {
        player.beginAgain();
        expect(player.kv.historyLength + player.kv.lostTokens).toBe(16);
      } else expect(answer).toBe(true);
    }
    const missing = text(index + 1, 16).slice(player.numComputed);
    expect(player.extend(missing)).toBe(true);
    expect(player.kv.lostTokens).toBe(0);
    player.suspend();
    checkInvariants(stage.manager);
  }
}

const tight = model([full(), windowed(4), recurrent()], { slots: [4, 4, 2], hostSlots: 2, diskSlots: 16, maxUtilForResume: 1 });

test.each(['read', 'put', 'get', 'damage', 'delete'] as const)(
  'whichever %s fails, nothing leaks and every page that is read is right',
  async (what) => {
    for (let at = 1; ; at++) {
      const fails = (call: number) => call === at;
      const device = new UnreadableDevice(what === 'read' ? fails : () => false);
      const disk = new FailingStore(new MemoryTierStore(), what === 'read' ? {} : { [what]: fails });
      const stage = new Stage(tight, device, { disk });
      await journey(stage);
      await stage.finish();
      const calls = {
        read: device.numReads,
        put: disk.numPuts,
        get: disk.numGets,
        damage: disk.numGets,
        delete: disk.numDeletes,
      }[what];
      if (calls < at) break;
    }
  },
);

test('a disk that fails always costs time, and nothing else', async () => {
  const always = () => true;
  const stage = new Stage(tight, undefined, {
    disk: new FailingStore(new MemoryTierStore(), { put: always, get: always, delete: always }),
  });
  await journey(stage);
  await stage.finish();
});

test('what cannot be written to the disk goes back to the host if there is room', async () => {
  const disk = new FailingStore(new MemoryTierStore(), { put: () => true });
  const stage = new Stage(model([full()], { slots: 4, hostSlots: 4, diskSlots: 8, maxUtilForResume: 1 }), undefined, { disk });
  const first = await stage.start();
  expect(first.extend(text(1, 16))).toBe(true);
  first.suspend();
  const second = await stage.start();
  expect(second.extend(text(2, 16))).toBe(true);
  await stage.manager.settled();
  second.suspend();
  const third = await stage.start();
  expect(third.step(text(3, 16))).toBe(true);
  second.close();
  await stage.manager.settled();
  expect([stage.used(0), stage.traffic(0).lost]).toEqual([[4, 4, 0], 0]);
  third.close();
  expect(await first.resume()).toBe(true);
  await stage.finish();
});

test('a lost page of nobody is a miss, and takes nothing along that is still of use', async () => {
  const stage = new Stage(
    model([full(), windowed(4)], { slots: 4, hostSlots: 8, maxUtilForResume: 1 }),
    new UnreadableDevice((call) => call === 2),
  );
  await stage.donate(text(1, 12), [12]);
  const taker = await stage.start();
  expect(taker.step(text(2, 16))).toBe(true);
  await stage.manager.settled();
  expect([stage.traffic(0).lost + stage.traffic(1).lost > 0, stage.probe(text(1, 12)) < 12]).toEqual([true, true]);
  await stage.finish();
});
