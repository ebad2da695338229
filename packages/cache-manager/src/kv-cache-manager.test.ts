import {
  AmbiguousLayerError,
  type CacheConfig,
  ConfigError,
  defineCacheConfig,
  type LayerGroupId,
  StateError,
  UnknownBufferError,
} from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { full, model, recurrent, seq, windowed } from '../test/support/stage.ts';
import { TokenError } from './errors/token-error.ts';
import { HostPageDevice, type KvCache, KvCacheManager, type KvCacheManagerOptions, type PoolSpec } from './index.ts';
import { checkInvariants } from './testing/index.ts';

function managerOf(
  input = model([full(), windowed(8)]),
  device = new HostPageDevice(),
  options: Partial<KvCacheManagerOptions> = {},
): KvCacheManager {
  return new KvCacheManager({ config: defineCacheConfig(input), device, debugChecks: true, ...options });
}

/** A device whose memory is there when `arrive` is called, or never when `fail` is. */
class LateDevice extends HostPageDevice {
  arrive: () => void = () => {};
  fail: (reason: Error) => void = () => {};
  readonly #ready = new Promise<void>((resolve, reject) => {
    this.arrive = resolve;
    this.fail = reject;
  });

  override createPool(spec: PoolSpec) {
    return Object.assign(super.createPool(spec), { ready: this.#ready });
  }
}

async function active(manager: KvCacheManager, tokens: readonly number[] = []): Promise<KvCache> {
  const kv = manager.createKvCache({ tokens });
  expect(await kv.resume()).toBe(true);
  return kv;
}

describe('a manager', () => {
  test('refuses a config that was not checked and would not pass', () => {
    const config = { ...model([full()]), tokensPerBlock: 0 } as unknown as CacheConfig;
    expect(() => new KvCacheManager({ config, device: new HostPageDevice() })).toThrow(ConfigError);
  });

  test('tells the group of a buffer and the buffers of a group', () => {
    const manager = managerOf();
    expect([manager.getBufferGroupId(0, 'kv'), manager.getBufferGroupId(1, 'kv')]).toEqual([0, 1]);
    expect(manager.bufferGrouping).toEqual([[{ layerId: 0, role: 'kv' }], [{ layerId: 1, role: 'kv' }]]);
    expect(() => manager.getBufferGroupId(0, 'key')).toThrow(UnknownBufferError);
    expect(manager.lifecycles.size).toBe(2);
  });

  test('still answers by layer where that is clear, and refuses where it is not', () => {
    const whole = managerOf();
    expect([whole.getLayerGroupId(1), whole.layerGrouping]).toEqual([1, [[0], [1]]]);
    const split = managerOf({
      tokensPerBlock: 4,
      layers: [
        {
          type: 'ssm',
          layerId: 3,
          buffers: [
            { role: 'ssm_state', size: 64 },
            { role: 'replay', size: 64, reusePolicy: 'private' },
          ],
        },
      ],
      tiers: [{ tier: 'device', quota: 1 << 20 }],
    });
    expect(() => split.getLayerGroupId(3)).toThrow(AmbiguousLayerError);
    expect(() => split.layerGrouping).toThrow(AmbiguousLayerError);
    expect(split.getBufferGroupId(3, 'replay')).toBe(1);
  });

  test('counts slots by pool group', async () => {
    const manager = managerOf(model([full(), windowed(8)], { slots: [8, 4] }));
    const kv = await active(manager);
    kv.resize(8);
    kv.commit(seq(4));
    kv.suspend();
    expect(manager.storageStatistics(0).map(({ slotBytes: _, ...rest }) => rest)).toEqual([
      { total: 8, free: 6, evictable: 0, available: 6, unavailable: 2 },
      { total: 4, free: 2, evictable: 0, available: 2, unavailable: 2 },
    ]);
    kv.close();
    expect(manager.storageStatistics(0)[0]).toMatchObject({ free: 7, evictable: 1, available: 8, unavailable: 0 });
    expect(manager.storageStatistics(0)[0].slotBytes).toBe(manager.layout.poolGroups[0].slotBytes);
  });

  test('counts requests, blocks, pages and what was evicted', async () => {
    const manager = managerOf(model([full()], { slots: 4 }));
    const kv = await active(manager);
    kv.resize(12);
    kv.commit(seq(12));
    expect(manager.statistics()).toMatchObject({
      openRequests: 1,
      blocks: 3,
      failedEventPushes: 0,
      groups: [{ groupId: 0, policy: 'required', pages: 3, evictedPages: 0, missedSnapshots: 0 }],
    });
    kv.close();
    const other = await active(manager);
    other.resize(9);
    expect(manager.statistics()).toMatchObject({ openRequests: 1, blocks: 1, groups: [{ pages: 4, evictedPages: 2 }] });
  });

  test('counts as evicted also what is lost behind an evicted page', async () => {
    const manager = managerOf(model([full(), windowed(8)], { slots: [4, 16] }), new HostPageDevice(), { eviction: 'lru' });
    const kv = manager.createKvCache({ priority: (ordinal) => ordinal });
    await kv.resume();
    kv.resize(12);
    kv.commit(seq(12));
    kv.close();
    const other = await active(manager);
    other.resize(8);
    expect(manager.statistics().groups.map(({ evictedPages }) => evictedPages)).toEqual([3, 3]);
  });

  test.each([-1, 1, 0.5])('has no tier %d', (tier) => {
    expect(() => managerOf().storageStatistics(tier)).toThrow(StateError);
  });

  test('resolves `settled` when everything has landed', async () => {
    await managerOf().settled();
  });
});

describe('opening a request', () => {
  test('with something that is no token, or in a bad scope, opens none', () => {
    const manager = managerOf();
    expect(() => manager.createKvCache({ tokens: [1, -1] })).toThrow(TokenError);
    expect(() => manager.createKvCache({ scope: { salt: -1 } })).toThrow(StateError);
    expect(() => manager.probeReuse([0.5])).toThrow(TokenError);
    expect(manager.statistics().openRequests).toBe(0);
  });

  test('keeps the name it is given', () => {
    expect([managerOf().createKvCache({ id: 7 }).id, managerOf().createKvCache().id]).toEqual([7, undefined]);
  });

  test('begins suspended, with nothing allocated and every length at the match', async () => {
    const manager = managerOf();
    const donor = await active(manager);
    donor.resize(8);
    donor.commit(seq(8));
    donor.close();
    const before = manager.storageStatistics(0).map(({ free }) => free);
    const kv = manager.createKvCache({ tokens: seq(10) });
    expect([kv.status, kv.numCommittedTokens, kv.historyLength, kv.capacity, kv.beamWidth]).toEqual(['suspended', 8, 8, 8, 1]);
    expect(manager.storageStatistics(0).map(({ free }) => free)).toEqual(before);
    expect([...kv.basePageIndices(0 as LayerGroupId)]).toEqual([-1, -1]);
  });

  test('does not keep the caller`s token array', async () => {
    const manager = managerOf();
    const donor = await active(manager);
    donor.resize(4);
    donor.commit(seq(4));
    donor.close();
    const tokens = Uint32Array.from(seq(4));
    const kv = manager.createKvCache({ tokens });
    tokens.fill(9);
    await kv.resume();
    kv.resize(8);
    kv.commit([4, 5, 6, 7]);
    expect(manager.probeReuse(seq(8))).toBe(8);
  });
});

describe('a config without buffers', () => {
  test.each([
    ['no layers', []],
    ['a layer without buffers', [{ type: 'attention' as const, layerId: 0, buffers: [] }]],
    ['buffers that are absent on this shard', [{ type: 'ssm' as const, layerId: 0, buffers: [{ role: 'ssm_state', size: 0 }] }]],
  ])('of %s serves requests that have no pages and share nothing', async (_, layers) => {
    const manager = managerOf({ tokensPerBlock: 4, layers, tiers: [{ tier: 'device', quota: 1 << 20 }] });
    const kv = await active(manager, seq(4));
    expect([kv.reuseStatus, kv.resize(6)]).toEqual([[], true]);
    kv.commit(seq(6));
    kv.suspend();
    expect(await kv.resume()).toBe(true);
    kv.stopCommitting();
    kv.close();
    expect([
      manager.probeReuse(seq(6)),
      manager.storageStatistics(0),
      manager.bufferGrouping,
      manager.statistics().blocks,
    ]).toEqual([0, [], [], 0]);
    await manager.close();
  });
});

describe('while memory is on its way', () => {
  test('a resume waits, and two at once make one', async () => {
    const device = new LateDevice();
    const manager = managerOf(model([full()]), device);
    const kv = manager.createKvCache();
    const [first, second] = [kv.resume(), kv.resume()];
    expect(kv.status).toBe('suspended');
    device.arrive();
    expect(await first).toBe(true);
    await expect(second).rejects.toMatchObject({ name: 'StateError', code: 'resume-active' });
    expect([kv.status, kv.resize(4)]).toEqual(['active', true]);
    checkInvariants(manager);
  });

  test('the first of two choices counts', async () => {
    const device = new LateDevice();
    const manager = managerOf(model([full(), windowed(8, 'optional')]), device);
    device.arrive();
    const donor = await active(manager);
    donor.resize(8);
    donor.commit(seq(8));
    donor.close();
    const kv = manager.createKvCache({ tokens: seq(8) });
    const shared = manager.storageStatistics(0)[1].evictable;
    const [first, second] = [kv.resume({ optionalReuseGroups: [1 as LayerGroupId] }), kv.resume({ optionalReuseGroups: [] })];
    expect(await first).toBe(true);
    await expect(second).rejects.toThrow(StateError);
    // The selected pages are shared: none was made fresh.
    expect(manager.storageStatistics(0)[1]).toMatchObject({ evictable: shared, unavailable: 2 });
  });

  test('a request may be closed; its resume then finds it closed', async () => {
    const device = new LateDevice();
    const manager = managerOf(model([full()]), device);
    const kv = manager.createKvCache();
    const resumed = kv.resume();
    kv.close();
    device.arrive();
    await expect(resumed).rejects.toMatchObject({ code: 'resume-closed' });
    checkInvariants(manager);
    expect(manager.storageStatistics(0)[0].free).toBe(manager.storageStatistics(0)[0].total);
  });

  test('the manager may be closed by force', async () => {
    const device = new LateDevice();
    const manager = managerOf(model([full()]), device);
    const resumed = manager.createKvCache().resume();
    await manager.close({ force: true });
    device.arrive();
    await expect(resumed).rejects.toMatchObject({ code: 'resume-closed' });
  });

  test('a bad choice is refused at once, and a good one may follow', async () => {
    const device = new LateDevice();
    const kv = managerOf(model([full()]), device).createKvCache();
    const refused = kv.resume({ optionalReuseGroups: [0 as LayerGroupId] });
    const resumed = kv.resume();
    await expect(refused).rejects.toMatchObject({ name: 'ReuseSelectionError' });
    device.arrive();
    expect(await resumed).toBe(true);
  });

  test('memory that cannot be had is told by `ready`, `settled` and every resume; requests can be closed', async () => {
    const device = new LateDevice();
    const manager = managerOf(model([full()]), device);
    const kv = manager.createKvCache();
    const resumed = kv.resume();
    device.fail(new Error('out of memory'));
    await expect(resumed).rejects.toThrow('out of memory');
    await expect(manager.ready()).rejects.toThrow('out of memory');
    await expect(manager.settled()).rejects.toThrow('out of memory');
    expect(kv.status).toBe('suspended');
    kv.close();
    await manager.close();
  });
});

describe('a closed manager', () => {
  test('opens, probes and clears no more, and closes again without a word', async () => {
    const manager = managerOf();
    await manager.close();
    for (const call of [() => manager.createKvCache(), () => manager.probeReuse([1]), () => manager.clearReusableBlocks()]) {
      expect(call).toThrow(expect.objectContaining({ name: 'StateError', code: 'manager-closed' }));
    }
    await manager.close();
  });

  test('has given its memory back', async () => {
    const pools: { bytes: Uint8Array }[] = [];
    class Watching extends HostPageDevice {
      override createPool(spec: PoolSpec) {
        const pool = super.createPool(spec);
        pools.push(pool);
        return pool;
      }
    }
    const manager = managerOf(model([full(), recurrent()]), new Watching());
    await manager.close();
    expect(pools.map(({ bytes }) => bytes.length)).toEqual([0, 0]);
  });
});

describe('a priority function', () => {
  const hybrid = model([full(), recurrent()], { slots: 8 });

  test('is asked for each new page and for the snapshot of a commit, by block and lifecycle', async () => {
    const manager = managerOf(hybrid);
    const asked: [number, string][] = [];
    const kv = manager.createKvCache({
      priority: (ordinal, lifecycle) => {
        asked.push([ordinal, lifecycle.kind]);
        return 50;
      },
    });
    await kv.resume();
    kv.resize(9);
    kv.commit(seq(9));
    expect(asked).toEqual([
      [0, 'attention'],
      [1, 'attention'],
      [2, 'attention'],
      [2, 'ssm'],
    ]);
  });

  test.each([101, -1, 0.5, Number.NaN, '5' as unknown as number])(
    'that answers %s is refused before anything changed',
    async (answer) => {
      const manager = managerOf(hybrid);
      let reply = 50;
      const kv = manager.createKvCache({ priority: () => reply });
      await kv.resume();
      kv.resize(4);
      reply = answer;
      expect(() => kv.resize(5)).toThrow(expect.objectContaining({ name: 'StateError', code: 'invalid-priority' }));
      expect(() => kv.commit(seq(4))).toThrow(expect.objectContaining({ code: 'invalid-priority' }));
      expect([kv.capacity, kv.numCommittedTokens, manager.probeReuse(seq(4))]).toEqual([4, 0, 0]);
      reply = 0;
      kv.commit(seq(4));
      expect(manager.probeReuse(seq(4))).toBe(4);
    },
  );

  test('that throws is heard by the caller of resume, resize and commit; close never asks', async () => {
    const manager = managerOf(hybrid);
    const donor = await active(manager);
    donor.resize(5);
    donor.commit(seq(5));
    donor.close();
    const fails = { now: true };
    const kv = manager.createKvCache({
      tokens: seq(5),
      priority: () => {
        if (fails.now) throw new Error('no opinion');
        return 50;
      },
    });
    await expect(kv.resume()).rejects.toThrow('no opinion');
    expect(kv.status).toBe('suspended');
    fails.now = false;
    expect(await kv.resume()).toBe(true);
    fails.now = true;
    expect(() => kv.resize(12)).toThrow('no opinion');
    expect(kv.capacity).toBe(5);
    fails.now = false;
    kv.resize(12);
    kv.commit([5, 6]);
    fails.now = true;
    expect(() => kv.commit([7])).toThrow('no opinion');
    expect(kv.numCommittedTokens).toBe(7);
    kv.close();
    expect([kv.status, manager.probeReuse(seq(7))]).toEqual(['closed', 7]);
  });

  test('may look at the manager, but every call that would change it is refused', async () => {
    const manager = managerOf(hybrid);
    const other = await active(manager);
    const refused: unknown[] = [];
    const attempt = (call: () => unknown) => {
      try {
        call();
      } catch (error) {
        refused.push((error as StateError).code);
      }
    };
    const kv: KvCache = manager.createKvCache({
      priority: () => {
        attempt(() => manager.createKvCache());
        attempt(() => manager.clearReusableBlocks());
        attempt(() => other.resize(8));
        attempt(() => other.commit([1]));
        attempt(() => other.stopCommitting());
        attempt(() => other.suspend());
        attempt(() => other.close());
        attempt(() => kv.close());
        return manager.probeReuse([1]) + manager.statistics().openRequests;
      },
    });
    await kv.resume();
    expect(kv.resize(4)).toBe(true);
    expect(refused).toEqual(new Array(8).fill('called-from-priority'));
    expect([other.status, kv.status]).toEqual(['active', 'active']);
    await expect(other.resume()).rejects.toThrow(StateError);
  });

  test('decides what is evicted first', async () => {
    const manager = managerOf(model([windowed(100)], { slots: 27 }));
    const keep = manager.createKvCache({ priority: (ordinal) => (ordinal === 0 ? 90 : 10) });
    await keep.resume();
    keep.resize(8);
    keep.commit(seq(8));
    keep.close();
    const later = await active(manager);
    later.resize(4);
    later.commit([50, 51, 52, 53]);
    later.close();
    const hungry = await active(manager);
    hungry.resize(4 * 25);
    expect([manager.probeReuse(seq(8)), manager.probeReuse([50, 51, 52, 53])]).toEqual([4, 4]);
    hungry.resize(4 * 26);
    expect([manager.probeReuse(seq(8)), manager.probeReuse([50, 51, 52, 53])]).toEqual([4, 0]);
  });
});
