import { type CacheConfigInput, defineCacheConfig } from '@bufferwise/core-policy';
import { expect, test } from 'vitest';
import { KvCacheManager } from '../../src/index.ts';
import { checkInvariants } from '../../src/testing/index.ts';
import { checkSnapshot } from '../support/check-snapshot.ts';
import { DeviceFault, FaultyDevice } from '../support/faulty-device.ts';
import type { Player } from '../support/player.ts';
import { full, model, recurrent, Stage, seq, windowed } from '../support/stage.ts';

const MANY = 100;
/** Milliseconds: far more than the story takes, as a busy machine is no failure. */
const TIMEOUT = 60_000;

/** Tells a story again and again, with the device refusing its first commands, its second and so on, until none is left to refuse. */
async function refusing(config: CacheConfigInput, story: (stage: Stage, attempt: Attempt) => Promise<void>): Promise<number> {
  for (let failAt = 1; failAt < MANY; failAt++) {
    const device = new FaultyDevice('execute', failAt);
    const stage = new Stage(config, device);
    await story(stage, (call) => attempt(stage, call));
    checkSnapshot(stage.manager);
    await expectToldOnce(stage);
    await stage.finish();
    if (!device.hasFailed) return failAt - 1;
  }
  throw new Error('a story without end');
}

type Attempt = <T>(call: () => T | Promise<T>) => Promise<T>;

/** Does a thing; when the device refuses it, nothing may have changed, and the next try must work. */
async function attempt<T>(stage: Stage, call: () => T | Promise<T>): Promise<T> {
  const before = stage.manager.inspect();
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof DeviceFault)) throw error;
    checkInvariants(stage.manager);
    expect(stage.manager.inspect()).toEqual(before);
    return await call();
  }
}

/** Copies that a commit left out are counted, and the reason is told to whoever waits for copies. */
async function expectToldOnce(stage: Stage): Promise<void> {
  const missed = stage.manager.statistics().groups.reduce((sum, group) => sum + group.missedSnapshots, 0);
  if (missed > 0) await expect(stage.manager.settled()).rejects.toThrow(DeviceFault);
  await stage.manager.settled();
}

test(
  'whatever commands the device refuses, what throws has changed nothing and the next try works',
  async () => {
    const config = model([
      full(),
      windowed(6, 'optional'),
      windowed(5, 'private'),
      recurrent(),
      recurrent('optional'),
      recurrent('private'),
    ]);
    const refused = await refusing(config, async (stage, again) => {
      const donor = stage.open([]);
      await again(() => donor.resume());
      donor.extend(seq(10));
      donor.extend([10, 11]);
      donor.close();
      const player = stage.open([...seq(10), 50, 51]);
      await again(() => player.resume({ rebuiltGroups: [1 as never] }));
      player.step([50]);
      player.settle();
      await again(() => player.forkBeams(3));
      player.stepBeams([[1], [2], [3]]);
      player.settle();
      await again(() => player.reorderBeams([1, 1, 0]));
      player.stepBeams([[4], [5], [6]]);
      player.settle();
      await again(() => player.keepBeam(2));
      player.commit();
      const fork = await again(() => player.fork());
      player.extend([7, 8, 9]);
      fork?.extend([9, 8, 7]);
      player.kv.stopCommitting();
      for (const each of [player, fork as Player]) each.verifyAll();
      fork?.suspend();
      await again(() => (fork as Player).resume());
    });
    expect(refused).toBeGreaterThan(8);
  },
  TIMEOUT,
);

test('a commit whose copies the device refuses goes through without them, and says so when it is asked', async () => {
  const device = new FaultyDevice('execute', 2);
  const stage = new Stage(model([full(), recurrent()]), device);
  const player = await stage.start();
  player.extend(seq(6));
  expect(player.kv.numCommittedTokens).toBe(6);
  expect(stage.probe(seq(6))).toBe(0);
  expect(stage.manager.statistics().groups.map(({ missedSnapshots }) => missedSnapshots)).toEqual([1, 1]);
  await expect(stage.manager.settled()).rejects.toThrow(DeviceFault);
  await stage.manager.settled();
  player.extend([6]);
  expect(stage.probe(seq(7))).toBe(7);
  await stage.finish();
});

test('a resume for which only declined claims have room loses none of them to a device that refuses', async () => {
  const device = new FaultyDevice('execute', 0);
  const stage = new Stage(model([full(), recurrent('optional')], { slots: [32, 2], maxUtilForResume: 1 }), device);
  await stage.donate(seq(8), [8], { end: true });
  const player = stage.open([...seq(8), 8]);
  const other = await stage.start([90]);
  expect(stage.slots(1)).toEqual({ free: 0, evictable: 0, total: 2 });
  // Selecting needs a second slot beside the claim; declining is content with the slot of the claim.
  expect(await player.resume({ optionalReuseGroups: [1 as never] })).toBe(false);
  device.failNext();
  const before = stage.manager.inspect();
  await expect(player.resume()).rejects.toThrow(DeviceFault);
  expect(stage.manager.inspect()).toEqual(before);
  checkInvariants(stage.manager);
  other.close();
  expect(await player.resume({ optionalReuseGroups: [1 as never] })).toBe(true);
  player.extend([8]);
  await stage.finish();
});

test('a resume for which only declined claims have room takes their slots', async () => {
  const stage = new Stage(model([full(), recurrent('optional')], { slots: [32, 2], maxUtilForResume: 1 }));
  await stage.donate(seq(8), [8], { end: true });
  const player = stage.open([...seq(8), 8]);
  const other = await stage.start([90]);
  expect(await player.resume()).toBe(true);
  player.extend([8]);
  other.extend([90]);
  expect(stage.slots(1)).toEqual({ free: 0, evictable: 0, total: 2 });
  await stage.finish();
});

test('claims of a window may give their slots to state of the same pools', async () => {
  const buffers = [{ role: 'part', size: 256 << 10 }];
  const config: CacheConfigInput = {
    tokensPerBlock: 4,
    layers: [
      { type: 'attention', layerId: 0, slidingWindowSize: 6, reusePolicy: 'optional', buffers },
      { type: 'ssm', layerId: 1, reusePolicy: 'optional', buffers },
      { type: 'attention', layerId: 2, buffers: [{ role: 'part', size: 32 << 10 }] },
    ],
    tiers: [{ tier: 'device', quota: 4 << 20 }],
    initialPoolRatio: [1, 1, 2],
    maxUtilForResume: 1,
  };
  const device = new FaultyDevice('execute', 0);
  const stage = new Stage(config, device);
  expect(stage.manager.inspect().groups.map(({ poolGroup }) => poolGroup)).toEqual([0, 0, 1]);
  await stage.donate(seq(8), [8], { end: true });
  const player = stage.open([...seq(8), 8]);
  // Somebody else takes all the rest of the pools that windows and state share.
  const others: Player[] = [];
  while (stage.slots(0).free + stage.slots(0).evictable > 0) others.push(await stage.start([90]));
  const before = stage.manager.inspect();
  device.failNext();
  await expect(player.resume()).rejects.toThrow(DeviceFault);
  expect(stage.manager.inspect()).toEqual(before);
  expect(await player.resume()).toBe(true);
  player.extend([8]);
  checkSnapshot(stage.manager);
  await stage.finish();
});

const everyKind = model([full(), windowed(6, 'private'), recurrent()]);

test('a pool that cannot be made takes the others along, and the device serves the next manager', () => {
  for (const failAt of [1, 2, 3]) {
    const device = new FaultyDevice('createPool', failAt);
    const make = () => new KvCacheManager({ config: defineCacheConfig(everyKind), device });
    expect(make).toThrow(DeviceFault);
    expect(device.pools.map(({ bytes }) => bytes.length)).toEqual(new Array(failAt - 1).fill(0));
    expect(make).not.toThrow();
    expect(device.pools.length).toBe(failAt - 1 + 3);
  }
});

test('memory that turns out not to be there fails whoever waits for it, and changes nothing', async () => {
  for (const failAt of [1, 2, 3]) {
    const device = new FaultyDevice('ready', failAt);
    const stage = new Stage(everyKind, device);
    const player = stage.open(seq(4));
    const before = stage.manager.inspect();
    for (let i = 0; i < 2; i++) await expect(player.resume()).rejects.toThrow(DeviceFault);
    await expect(stage.manager.ready()).rejects.toThrow(DeviceFault);
    await expect(stage.manager.settled()).rejects.toThrow(DeviceFault);
    expect(stage.manager.inspect()).toEqual(before);
    await stage.finish();
    // The next manager is served: the device fails once.
    const next = new Stage(everyKind, device);
    expect(await next.open(seq(4)).kv.resume()).toBe(true);
    await next.manager.close({ force: true });
  }
});

test('memory that is not there and that nobody waits for ends nothing but itself', async () => {
  const stage = new Stage(everyKind, new FaultyDevice('ready', 2));
  await new Promise((resolve) => setTimeout(resolve, 0));
  await stage.finish();
});
