import type { CacheConfigInput } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import type { EvictionChoice, EvictionPolicy, KvCacheManagerOptions, RetentionRange } from '../../src/index.ts';
import { checkInvariants } from '../../src/testing/index.ts';
import { QueueLog } from '../support/queue-log.ts';
import { StackPolicy } from '../support/stack-policy.ts';
import { full, GRAIN_BYTES, model, recurrent, Stage, seq, windowed } from '../support/stage.ts';
import { StampedDevice } from '../support/stamped-device.ts';

const TIMEOUT = 60_000;

/** Tokens that no other text begins with. */
const text = (name: number, count: number) => seq(count).map((token) => name * 1000 + token);

type StageOptions = Partial<Pick<KvCacheManagerOptions, 'eviction' | 'maxPinnedShare' | 'stagingBytes'>>;

/** A story with a clock that it moves, and a crowd that it calls: strangers of 4 blocks each, so that all goes that may. */
function story(
  sentence: string,
  config: CacheConfigInput,
  options: StageOptions,
  tell: (stage: Stage, clock: { now: number }, crowd: (count?: number) => Promise<void>) => Promise<void>,
): void {
  test(
    sentence,
    async () => {
      const clock = { now: 0 };
      const stage = new Stage({ maxUtilForResume: 1, ...config }, new StampedDevice(), { ...options, now: () => clock.now });
      let next = 100;
      const crowd = async (count = 12) => {
        for (let i = 0; i < count; i++) {
          await stage.donate(text(next++, 16), [16]);
          await stage.manager.settled();
        }
      };
      await tell(stage, clock, crowd);
      await stage.finish();
    },
    TIMEOUT,
  );
}

const POLICIES: [string, EvictionChoice][] = [
  ['lru', 'lru'],
  ['cost-aware', 'cost-aware'],
  ['a stack', () => new StackPolicy()],
];
const BUILT_IN = POLICIES.slice(0, 2);

describe.each(POLICIES)('with %s in every tier', (_, eviction) => {
  story(
    'a pinned prefix survives pressure in all of them',
    model([full(), windowed(8)], { slots: 16, hostSlots: 12, diskSlots: 12 }),
    { eviction },
    async (stage, _clock, crowd) => {
      const prefix = text(1, 16);
      await stage.donate(prefix, [16]);
      const pin = stage.manager.pin(prefix);
      expect(pin?.numTokens).toBe(16);
      await crowd();
      expect(stage.probe(prefix)).toBe(16);
      const reader = await stage.start([...prefix, 5]);
      expect(reader.kv.numCommittedTokens).toBe(16);
      reader.close();
      await crowd();
      expect(stage.probe(prefix)).toBe(16);
      pin?.release();
    },
  );

  story(
    'what nobody holds goes down a tier at a time, and comes back from each with its content',
    model([full(), recurrent()], { slots: [8, 4], hostSlots: 8, diskSlots: 8 }),
    { eviction },
    async (stage, _clock, crowd) => {
      for (let name = 1; name <= 6; name++) {
        await stage.donate(text(name, 14), [8, 14]);
        await stage.manager.settled();
      }
      for (let name = 1; name <= 6; name++) {
        const reader = await stage.start([...text(name, 14), 9]);
        reader.close();
        await stage.manager.settled();
      }
      expect(stage.traffic(0).offloaded).toBeGreaterThan(0);
      await crowd(6);
    },
  );

  story(
    'forgetting everything empties the colder ones too, also while pages are on their way',
    model([full(), windowed(8)], { slots: 8, hostSlots: 8, diskSlots: 8 }),
    { eviction },
    async (stage, _clock, crowd) => {
      await crowd(6);
      await stage.donate(text(1, 32), [32]);
      stage.manager.clearReusableBlocks();
      for (const tier of [0, 1, 2]) for (const { free, total } of stage.manager.storageStatistics(tier)) expect(free).toBe(total);
      await crowd(3);
    },
  );
});

describe.each(BUILT_IN)('with %s', (_, eviction) => {
  const kept: RetentionRange[] = [{ begin: 0, priority: 80, durationMs: 1000 }];

  story(
    'a range with a time to live is kept through device, host and device, and is as usual when the time is over',
    model([full()], { slots: 8, hostSlots: 8 }),
    { eviction },
    async (stage, clock, crowd) => {
      const prompt = text(1, 12);
      await stage.donate(prompt, [12], { retention: kept });
      const big = await stage.start();
      expect(big.extend(text(2, 32))).toBe(true);
      await stage.manager.settled();
      expect(stage.used(0)).toEqual([8, 3]);
      big.close();
      await crowd(6);
      expect(stage.probe(prompt)).toBe(12);
      clock.now = 900;
      const reader = await stage.start([...prompt, 3]);
      expect(reader.kv.numCommittedTokens).toBe(12);
      reader.close();
      clock.now = 1800;
      await crowd(6);
      expect(stage.probe(prompt)).toBe(12);
      clock.now = 1900;
      await crowd(30);
      expect(stage.probe(prompt)).toBe(0);
    },
  );

  story(
    'a path that was evicted from every tier is remembered: when it comes back it counts as reused',
    model([full()], { slots: 16, hostSlots: 16 }),
    { eviction },
    async (stage, _clock, crowd) => {
      const prompt = text(1, 16);
      await stage.donate(prompt, [16]);
      await crowd(10);
      expect(stage.probe(prompt)).toBe(0);
      await stage.donate(prompt, [16]);
      await crowd(4);
      if (eviction === 'cost-aware') expect(stage.probe(prompt)).toBe(16);
    },
  );

  story(
    'pages that only fit nowhere below leave the last ones of a path first, not what the path hangs from',
    model([full()], { slots: 16, hostSlots: 16 }),
    { eviction, stagingBytes: GRAIN_BYTES / 16 },
    async (stage) => {
      const path = text(1, 48);
      // The beginning is worth least, so it goes first; but only one page at a time finds its way to the host.
      await stage.donate(path, [48], { retention: [{ begin: 0, end: 8, priority: 0 }] });
      const other = await stage.start();
      expect(other.extend(text(2, 32))).toBe(true);
      await stage.manager.settled();
      expect(stage.probe(path)).toBeGreaterThanOrEqual(24);
      other.close();
    },
  );
});

describe('a pin', () => {
  story(
    'of a prefix that sits in the host keeps it there, and from there it is used',
    model([full(), windowed(8)], { slots: 8, hostSlots: 8, diskSlots: 4 }),
    {},
    async (stage, _clock, crowd) => {
      const prefix = text(1, 12);
      await stage.donate(prefix, [12]);
      const big = await stage.start();
      expect(big.extend(text(2, 32))).toBe(true);
      await stage.manager.settled();
      expect(stage.used(0)[1]).toBe(3);
      const pin = stage.manager.pin(prefix);
      expect(pin?.numTokens).toBe(12);
      big.close();
      await crowd();
      expect(stage.probe(prefix)).toBe(12);
      const reader = await stage.start([...prefix, 5]);
      expect(reader.kv.numCommittedTokens).toBe(12);
      reader.close();
      pin?.release();
    },
  );

  story(
    'holds the prefix, not pages: a longer page that takes the place of its partial one is held instead',
    model([full()], { slots: 16 }),
    {},
    async (stage, _clock, crowd) => {
      const prefix = text(1, 10);
      await stage.donate(prefix, [10]);
      const pins = [stage.manager.pin(prefix), stage.manager.pin(prefix)];
      await stage.donate(text(1, 12), [12]);
      expect(stage.slots(0)).toMatchObject({ free: 13, evictable: 0 });
      await crowd();
      expect(stage.probe(prefix)).toBe(10);
      for (const pin of pins) pin?.release();
      expect(stage.slots(0)).toMatchObject({ total: 16 });
    },
  );

  story(
    'whose time is over does not keep a tier from being made smaller',
    model([full()], { slots: 16 }),
    { maxPinnedShare: 1 },
    async (stage, clock) => {
      await stage.donate(text(1, 64), [64]);
      expect(stage.manager.pin(text(1, 64), undefined, { durationMs: 10 })?.numTokens).toBe(64);
      const quota = Math.ceil(stage.config.tiers[0].quota / 2);
      clock.now = 10;
      expect(stage.slots(0)).toMatchObject({ free: 0, evictable: 0 });
      const done = await stage.manager.resizeTier(0, quota);
      // One grain is the least there can be: what counts is that the pin is gone.
      expect([done, stage.slots(0).evictable]).toEqual([expect.any(Boolean), 16]);
    },
  );

  story(
    'whose time is over does not keep a prefetch out',
    model([full()], { slots: 8, hostSlots: 8 }),
    { maxPinnedShare: 1 },
    async (stage, clock) => {
      const waiting = await stage.start();
      expect(waiting.extend(text(1, 32))).toBe(true);
      waiting.suspend();
      await stage.donate(text(2, 32), [32]);
      await stage.manager.settled();
      expect(stage.used(0)).toEqual([8, 8]);
      const pin = stage.manager.pin(text(2, 32), undefined, { durationMs: 10 });
      expect(pin?.numTokens).toBe(32);
      expect(await waiting.kv.prefetch(0)).toBe(false);
      clock.now = 10;
      expect(await waiting.kv.prefetch(0)).toBe(true);
    },
  );

  story(
    'outlives the loss of the device with what the host holds, and lets go of what no match can reach any more',
    model([full()], { slots: 8, hostSlots: 8 }),
    { maxPinnedShare: 1 },
    async (stage, _clock, crowd) => {
      const whole = text(1, 16);
      const broken = text(2, 16);
      await stage.donate(whole, [16]);
      await stage.donate(broken, [16]);
      const big = await stage.start();
      // All of the one goes to the host; of the other all but what it begins with.
      expect(big.extend(text(3, 28))).toBe(true);
      await stage.manager.settled();
      const pins = [stage.manager.pin(whole), stage.manager.pin(broken)];
      expect(pins.map((pin) => pin?.numTokens)).toEqual([16, 16]);
      expect(stage.used(0)).toEqual([8, 7]);
      stage.manager.deviceLost();
      checkInvariants(stage.manager);
      await stage.restoreDevice();
      expect([stage.probe(whole), stage.probe(broken)].sort((a, b) => a - b)).toEqual([0, 16]);
      expect(pins.map((pin) => pin?.isHeld)).toEqual([true, true]);
      expect(stage.used(0)[1]).toBe(4);
      await expect(big.resume()).rejects.toMatchObject({ code: 'pages-lost' });
      big.beginAgain();
      big.close();
      await crowd();
      expect(Math.max(stage.probe(whole), stage.probe(broken))).toBe(16);
      for (const pin of pins) pin?.release();
    },
  );
});

describe('a tier is made smaller and larger', () => {
  story(
    'around what is pinned, which stays',
    model([full()], { slots: 8, hostSlots: 16, diskSlots: 8 }),
    { maxPinnedShare: 1 },
    async (stage, _clock, crowd) => {
      const prefix = text(1, 12);
      await stage.donate(prefix, [12]);
      const pin = stage.manager.pin(prefix);
      await crowd(8);
      const { quota } = stage.config.tiers[1];
      expect(await stage.manager.resizeTier(1, Math.ceil(quota / 4))).toBe(true);
      expect(stage.probe(prefix)).toBe(12);
      expect(await stage.manager.resizeTier(1, quota * 2)).toBe(true);
      await crowd(8);
      expect(stage.probe(prefix)).toBe(12);
      const reader = await stage.start([...prefix, 4]);
      expect(reader.kv.numCommittedTokens).toBe(12);
      reader.close();
      pin?.release();
    },
  );
});

describe('a policy of the caller that', () => {
  type Fault = (others: readonly number[]) => number;
  const FAULTS: [string, Fault, string][] = [
    ['names no page', () => -1, 'names no page'],
    ['names a page that is held, or gone', ([page]) => page, 'is not in its queue'],
    ['names what is no page', () => Number.NaN, 'is not in its queue'],
    [
      'throws',
      () => {
        throw new Error('no idea');
      },
      'throws Error: no idea',
    ],
  ];

  /** Does well for a while, then no more. */
  class Failing extends StackPolicy {
    readonly everPushed: number[] = [];
    readonly #fault: Fault;
    readonly #fails: () => boolean;

    constructor(fault: Fault, fails: () => boolean) {
      super();
      this.#fault = fault;
      this.#fails = fails;
    }

    override push(page: number): void {
      if (!this.everPushed.includes(page)) this.everPushed.push(page);
      super.push(page);
    }

    override first(): number {
      const others = this.everPushed.filter((page) => !this.pages.includes(page));
      return this.#fails() ? this.#fault([...others, 12_345]) : super.first();
    }
  }

  test.each(FAULTS)(
    '%s is told to whoever wants room, and nothing is lost or mixed up',
    async (_, fault, message) => {
      for (const good of [0, 1, 3, 8]) {
        for (const tiers of [{}, { hostSlots: 6 }, { hostSlots: 6, diskSlots: 6 }]) {
          let asked = 0;
          const eviction = (): EvictionPolicy => new Failing(fault, () => asked++ >= good * 2);
          const config = model([full(), recurrent()], { slots: [8, 4], maxUtilForResume: 1, ...tiers });
          const stage = new Stage(config, new QueueLog(), { eviction });
          const held = await stage.start();
          expect(held.extend(text(99, 12))).toBe(true);
          let told = 0;
          for (let name = 0; name < 8; name++) {
            const player = stage.open(text(name % 5, 14));
            try {
              if (await player.resume()) player.extend(text(name % 5, 14).slice(player.numComputed));
            } catch (error) {
              expect(String(error)).toContain(message);
              expect(error).toMatchObject({ code: 'invariant' });
              told++;
            }
            checkInvariants(stage.manager);
            player.close();
            held.verifyAll();
            await stage.manager.settled();
          }
          if (good < 4) expect(told).toBeGreaterThan(0);
          await stage.finish();
        }
      }
    },
    TIMEOUT,
  );

  test('counts other pages than it was told of is told, too', async () => {
    const eviction = () => Object.defineProperty(new StackPolicy(), 'count', { get: () => 3 });
    const stage = new Stage(model([full()], { slots: 8, maxUtilForResume: 1 }), new StampedDevice(), { eviction });
    await stage.donate(text(1, 32), [32]);
    const next = await stage.start();
    expect(() => next.extend(text(2, 8))).toThrow('counts 3 of 8 pages');
    expect(next.numComputed).toBe(0);
    await stage.finish();
  });
});
