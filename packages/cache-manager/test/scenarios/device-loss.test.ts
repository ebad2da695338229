import { expect, test } from 'vitest';
import { HostPageDevice, KvCacheManager } from '../../src/index.ts';
import { QueueLog } from '../support/queue-log.ts';
import { scenario } from '../support/scenario.ts';
import { full, model, recurrent, Stage, seq, windowed } from '../support/stage.ts';
import { StampedDevice } from '../support/stamped-device.ts';

/** Tokens that no other text begins with. */
const text = (name: number, count: number) => seq(count).map((token) => name * 1000 + token);

scenario(
  'what lies in the host is there when the device is gone; what lay on the device is computed again',
  model([full(), recurrent()], { slots: [16, 2], hostSlots: 32, maxUtilForResume: 1 }),
  async (stage) => {
    const kept = await stage.start();
    expect(kept.extend(text(1, 14))).toBe(true);
    kept.suspend();
    const others = [];
    for (let name = 2; others.length < stage.slots(1).total; name++) {
      const player = await stage.start();
      expect(player.extend(text(name, others.length === 0 ? 64 : 0))).toBe(true);
      others.push(player);
    }
    await stage.manager.settled();
    const [active, waiting] = others;
    waiting.suspend();

    stage.manager.deviceLost();
    stage.manager.deviceLost();
    expect([kept, active, waiting].map(({ kv }) => kv.status)).toEqual(['suspended', 'suspended', 'suspended']);
    expect([kept.kv.historyLength, kept.kv.lostTokens]).toEqual([14, 0]);
    expect([active.kv.numCommittedTokens, active.kv.historyLength, active.kv.capacity, active.kv.lostTokens]).toEqual([
      0, 0, 0, 64,
    ]);
    expect(() => stage.manager.poolMemory(0, 'kv')).toThrow(expect.objectContaining({ code: 'device-lost' }));
    await expect(kept.resume()).rejects.toMatchObject({ code: 'device-lost' });
    await expect(kept.kv.prefetch(0)).rejects.toMatchObject({ code: 'device-lost' });
    await expect(stage.manager.resizeTier(0, 1 << 22)).rejects.toMatchObject({ code: 'device-lost' });

    await stage.restoreDevice();
    expect(await kept.resume()).toBe(true);
    expect(kept.extend(text(1, 20).slice(14))).toBe(true);
    kept.close();
    await expect(active.resume()).rejects.toMatchObject({ code: 'pages-lost', keptTokens: 0, lostTokens: 64 });
    active.beginAgain();
    expect(await active.resume()).toBe(true);
    expect(active.extend(text(2, 40))).toBe(true);
    expect(active.kv.lostTokens).toBe(24);
    expect(active.extend(text(2, 64).slice(40))).toBe(true);
    expect(active.kv.lostTokens).toBe(0);
  },
);

scenario(
  'a request of which a part lies in the host begins where that part ends',
  model([full(), windowed(4)], { slots: 16, hostSlots: 16, maxUtilForResume: 1 }),
  async (stage) => {
    await stage.donate(text(1, 16), [16]);
    const taker = await stage.start();
    expect(taker.extend(text(2, 64))).toBe(true);
    await stage.manager.settled();
    taker.close();
    const reader = await stage.start([...text(1, 16), 5]);
    expect(reader.kv.numCommittedTokens).toBe(16);
    reader.suspend();
    // Half of what it holds comes to lie in the host: the pages that were let go longest ago.
    const other = await stage.start();
    expect(other.step(text(3, 56))).toBe(true);
    await stage.manager.settled();
    stage.manager.deviceLost();
    const { kv } = reader;
    expect(kv.numCommittedTokens).toBe(stage.probe(text(1, 16)));
    expect(kv.numCommittedTokens + kv.lostTokens).toBe(16);
    expect(kv.matchDepths.usable).toBe(kv.numCommittedTokens);
    expect(kv.reuseStatus.every(({ complete, endpoint }) => endpoint === (complete ? kv.numCommittedTokens : 0))).toBe(true);
    await stage.restoreDevice();
    reader.beginAgain();
    await reader.resume().catch(() => {});
    if (kv.status === 'suspended') expect(await reader.resume()).toBe(true);
    expect(reader.extend(text(1, 16).slice(reader.numComputed))).toBe(true);
  },
);

scenario(
  'beams and forks are suspended like any other, and begin again as one',
  model([full()], { slots: 32, hostSlots: 32 }),
  async (stage) => {
    const player = await stage.start();
    expect(player.extend(text(1, 10))).toBe(true);
    const forked = player.fork();
    expect(player.forkBeams(3)).toBe(true);
    stage.manager.deviceLost();
    expect([player.kv.beamWidth, player.kv.lostTokens, forked?.kv.lostTokens]).toEqual([1, 10, 10]);
    await stage.restoreDevice();
    for (const each of [player, forked]) {
      await expect(each?.resume()).rejects.toMatchObject({ code: 'pages-lost' });
      each?.beginAgain();
      expect(await each?.resume()).toBe(true);
      expect(each?.extend(text(1, 10))).toBe(true);
    }
  },
);

scenario(
  'a request that was never resumed keeps what is left of its claim',
  model([full()], { slots: 16, hostSlots: 16 }),
  async (stage) => {
    await stage.donate(text(1, 16), [16]);
    const claim = stage.open([...text(1, 16), 1]);
    stage.manager.deviceLost();
    expect([claim.kv.numCommittedTokens, claim.kv.lostTokens, stage.probe(text(1, 16))]).toEqual([0, 16, 0]);
    const fresh = stage.open(text(1, 16));
    await stage.restoreDevice();
    expect(await fresh.resume()).toBe(true);
    await expect(claim.resume()).rejects.toMatchObject({ code: 'pages-lost' });
  },
);

test('a loss in the middle of a way back costs only what was on the device', async () => {
  const stage = new Stage(model([full()], { slots: 8, hostSlots: 8, diskSlots: 8, maxUtilForResume: 1 }));
  const players = [];
  for (const name of [1, 2, 3]) {
    const player = await stage.start();
    expect(player.extend(text(name, 32))).toBe(true);
    player.suspend();
    players.push(player);
    await stage.manager.settled();
  }
  const [first, second, third] = players;
  third.close();
  const going = [first.resume(), second.kv.prefetch(0)];
  await Promise.resolve();
  stage.manager.deviceLost();
  const restored = stage.restoreDevice();
  expect(await Promise.allSettled(going)).toEqual([
    { status: 'fulfilled', value: true },
    expect.objectContaining({ status: 'fulfilled' }),
  ]);
  await restored;
  first.verify();
  await stage.finish();
});

test('pages on their way to the host when the device goes are lost if they do not arrive', async () => {
  const device = new QueueLog();
  const stage = new Stage(model([full()], { slots: 8, hostSlots: 8, maxUtilForResume: 1 }), device);
  const first = await stage.start();
  expect(first.extend(text(1, 32))).toBe(true);
  first.suspend();
  device.failsReads = true;
  const second = await stage.start();
  expect(second.step(text(2, 16))).toBe(true);
  stage.manager.deviceLost();
  expect(first.kv.lostTokens).toBe(16);
  await stage.manager.settled();
  expect(first.kv.lostTokens).toBe(32);
  await stage.restoreDevice();
  await expect(first.resume()).rejects.toMatchObject({ code: 'pages-lost' });
  first.beginAgain();
  expect(await first.resume()).toBe(true);
  await stage.finish();
});

test('a device that says it is lost is believed, once, and only while it is the one in use', async () => {
  class MortalDevice extends StampedDevice {
    die: () => void = () => {};
    readonly lost = new Promise<void>((resolve) => {
      this.die = resolve;
    });
  }
  const [old, young] = [new MortalDevice(), new MortalDevice()];
  const stage = new Stage(model([full()], { hostSlots: 8 }), old);
  const player = await stage.start();
  expect(player.extend(text(1, 8))).toBe(true);
  old.die();
  await old.lost;
  expect(player.kv.status).toBe('suspended');
  await stage.restoreDevice(young);
  await expect(player.resume()).rejects.toMatchObject({ code: 'pages-lost' });
  player.beginAgain();
  expect(await player.resume()).toBe(true);
  old.die();
  await old.lost;
  expect(player.kv.status).toBe('active');
  young.die();
  await young.lost;
  expect(player.kv.status).toBe('suspended');
  await stage.restoreDevice();
  await stage.finish();
});

test('a device can be replaced that is not lost; one that has no memory leaves none', async () => {
  const stage = new Stage(model([full()], { hostSlots: 8 }));
  const player = await stage.start();
  expect(player.extend(text(1, 8))).toBe(true);
  await stage.restoreDevice();
  expect(stage.device.pools.every(({ bytes }) => bytes.length === 0)).toBe(true);
  expect(player.kv.lostTokens).toBe(8);
  class FullDevice extends HostPageDevice {
    override createPool(): never {
      throw new Error('no memory at all');
    }
  }
  await expect(stage.manager.restoreDevice(new FullDevice())).rejects.toThrow('no memory at all');
  await expect(player.resume()).rejects.toMatchObject({ code: 'device-lost' });
  await stage.restoreDevice();
  await stage.finish();
});

test('a manager that is closed has no device to lose', async () => {
  const stage = new Stage(model([full()]));
  await stage.finish();
  expect(() => stage.manager.deviceLost()).toThrow(expect.objectContaining({ code: 'manager-closed' }));
  await expect(stage.manager.restoreDevice(new HostPageDevice())).rejects.toMatchObject({ code: 'manager-closed' });
  expect(stage.manager).toBeInstanceOf(KvCacheManager);
});
