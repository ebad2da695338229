import { defineCacheConfig, StateError } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { HostPageDevice, KvCacheManager, type KvCacheManagerOptions } from '../../src/index.ts';
import { prompt, serve } from '../support/serve.ts';
import { full, type LayerShape, type ModelOptions, model, recurrent, windowed } from '../support/stage.ts';

/** A manager with a clock that a test moves, 4 tokens a block. */
function managed(
  layers: readonly LayerShape[] = [full()],
  { slots = 16, ...options }: ModelOptions & Partial<Pick<KvCacheManagerOptions, 'eviction' | 'maxPinnedShare'>> = {},
) {
  const clock = { now: 0 };
  const { eviction, maxPinnedShare, ...rest } = options;
  const manager = new KvCacheManager({
    config: defineCacheConfig(model(layers, { slots, maxUtilForResume: 1, ...rest })),
    device: new HostPageDevice(),
    debugChecks: true,
    now: () => clock.now,
    eviction,
    maxPinnedShare,
  });
  let next = 100;
  /** Serves strangers, each with a prompt of its own of 4 blocks, so that everything that may go goes. */
  const crowd = async (count = 40) => {
    for (let i = 0; i < count; i++) expect(await serve(manager, prompt(next++, 16))).toBe(0);
  };
  return { manager, clock, crowd };
}

describe.each(['lru', 'cost-aware'] as const)('with %s eviction', (eviction) => {
  describe('a range of tokens', () => {
    test('with a higher priority outlives everything usual; what is behind it does not', async () => {
      const { manager, crowd } = managed([full()], { eviction });
      const tokens = prompt(1, 24);
      await serve(manager, tokens, { retention: [{ begin: 0, end: 8, priority: 80 }] });
      await crowd();
      expect(manager.probeReuse(tokens)).toBe(8);
    });

    test('reaches to wherever the request ends when it has no end', async () => {
      const { manager, crowd } = managed([full()], { eviction });
      const tokens = prompt(1, 24);
      await serve(manager, tokens, { retention: [{ begin: 0, priority: 80 }] });
      await crowd();
      expect(manager.probeReuse(tokens)).toBe(24);
    });

    test('takes every block that it touches', async () => {
      const { manager, crowd } = managed([full()], { eviction });
      const tokens = prompt(1, 24);
      await serve(manager, tokens, { retention: [{ begin: 0, end: 9, priority: 80 }] });
      await crowd();
      expect(manager.probeReuse(tokens)).toBe(12);
    });

    test('with a lower priority leaves first, however fresh it is', async () => {
      const { manager, crowd } = managed([full()], { eviction });
      const old = prompt(1, 16);
      const fresh = prompt(2, 16);
      await serve(manager, old);
      await serve(manager, fresh, { retention: [{ begin: 0, priority: 0 }] });
      await crowd(3);
      expect([manager.probeReuse(old), manager.probeReuse(fresh)]).toEqual([16, 0]);
    });

    test('says more than the priority function, which is asked for the rest', async () => {
      const { manager, crowd } = managed([full()], { eviction });
      const tokens = prompt(1, 24);
      await serve(manager, tokens, { priority: () => 60, retention: [{ begin: 16, end: 24, priority: 10 }] });
      await crowd();
      expect(manager.probeReuse(tokens)).toBe(16);
    });

    test('raises the priority of pages that others wrote, and never lowers it', async () => {
      const { manager, crowd } = managed([full()], { eviction });
      const tokens = prompt(1, 16);
      await serve(manager, tokens);
      await serve(manager, [...tokens, 7], { retention: [{ begin: 0, end: 16, priority: 80 }] });
      await serve(manager, [...tokens, 8], { retention: [{ begin: 0, end: 16, priority: 50 }] });
      await serve(manager, [...tokens, 9], { retention: [{ begin: 0, end: 16, priority: 1 }] });
      await crowd();
      expect(manager.probeReuse(tokens)).toBe(16);
    });

    test('holds for windows and snapshots alike', async () => {
      const { manager, crowd } = managed([full(), windowed(8), recurrent()], { eviction });
      const tokens = prompt(1, 16);
      await serve(manager, tokens, { retention: [{ begin: 0, priority: 80 }] });
      await crowd();
      expect(manager.probeReuse([...tokens, 1])).toBe(16);
    });
  });

  describe('a range with a time to live', () => {
    const tokens = prompt(1, 16);
    const retention = [{ begin: 0, priority: 80, durationMs: 1000 }];

    test('is kept until the time is over, and is as usual from then on', async () => {
      const { manager, clock, crowd } = managed([full()], { eviction });
      await serve(manager, tokens, { retention });
      clock.now = 999;
      await crowd();
      expect(manager.probeReuse(tokens)).toBe(16);
      clock.now = 1000;
      await crowd();
      expect(manager.probeReuse(tokens)).toBe(0);
    });

    test('begins anew with every use', async () => {
      const { manager, clock, crowd } = managed([full()], { eviction });
      await serve(manager, tokens, { retention });
      clock.now = 900;
      expect(await serve(manager, [...tokens, 5])).toBe(16);
      clock.now = 1800;
      await crowd();
      expect(manager.probeReuse(tokens)).toBe(16);
      clock.now = 1900;
      await crowd();
      expect(manager.probeReuse(tokens)).toBe(0);
    });

    test('lives as long as the longest that was asked for at that priority', async () => {
      const { manager, clock, crowd } = managed([full()], { eviction });
      await serve(manager, tokens, { retention });
      await serve(manager, [...tokens, 5], { retention: [{ begin: 0, priority: 80, durationMs: 5000 }] });
      await serve(manager, [...tokens, 6], { retention: [{ begin: 0, priority: 80, durationMs: 10 }] });
      clock.now = 4999;
      await crowd();
      expect(manager.probeReuse(tokens)).toBe(16);
      clock.now = 5000;
      await crowd();
      expect(manager.probeReuse(tokens)).toBe(0);
    });

    test('does not end what somebody wants kept for good', async () => {
      const { manager, clock, crowd } = managed([full()], { eviction });
      await serve(manager, tokens, { priority: () => 80 });
      await serve(manager, [...tokens, 5], { retention });
      clock.now = 10_000;
      await crowd();
      expect(manager.probeReuse(tokens)).toBe(16);
    });

    test('does not run while a request holds the pages', async () => {
      const { manager, clock, crowd } = managed([full()], { eviction });
      await serve(manager, tokens, { retention });
      const holder = manager.createKvCache({ tokens });
      clock.now = 5000;
      await crowd(3);
      holder.close();
      clock.now = 5999;
      await crowd();
      expect(manager.probeReuse(tokens)).toBe(16);
    });
  });
});

describe('a range that is none', () => {
  test.each([
    [{ begin: -1, priority: 50 }, 'begins at -1'],
    [{ begin: 0.5, priority: 50 }, 'begins at 0.5'],
    [{ begin: 4, end: 4, priority: 50 }, 'is empty'],
    [{ begin: 0, priority: 101 }, 'has priority 101'],
    [{ begin: 0, priority: 3.5 }, 'has priority 3.5'],
    [{ begin: 0, priority: 50, durationMs: 0 }, 'has durationMs 0'],
    [{ begin: 0, priority: 50, durationMs: 1.5 }, 'has durationMs 1.5'],
    [{ begin: 0, priority: 50, durationMs: 2 ** 33 }, 'has durationMs 8589934592'],
  ])('%o is refused, and no request is open', async (range, text) => {
    const { manager } = managed();
    const open = () => manager.createKvCache({ tokens: [1], retention: [{ begin: 0, priority: 1 }, range] });
    expect(open).toThrow(StateError);
    expect(open).toThrow(`retention[1] ${text}`);
    expect(manager.statistics().openRequests).toBe(0);
  });
});

describe('a pinned prefix', () => {
  test('stays whatever comes, and goes once it is released', async () => {
    const { manager, crowd } = managed();
    const tokens = prompt(1, 16);
    await serve(manager, tokens);
    const pin = manager.pin([...tokens, 99]);
    expect([pin?.numTokens, pin?.isHeld]).toEqual([16, true]);
    await crowd();
    expect(manager.probeReuse(tokens)).toBe(16);
    pin?.release();
    pin?.release();
    expect(pin?.isHeld).toBe(false);
    await crowd();
    expect(manager.probeReuse(tokens)).toBe(0);
  });

  test('keeps what every group needs to continue there', async () => {
    const { manager, crowd } = managed([full(), windowed(8), recurrent()]);
    const tokens = prompt(1, 16);
    await serve(manager, tokens);
    expect(manager.pin(tokens)?.numTokens).toBe(16);
    await crowd();
    expect(await serve(manager, [...tokens, 7])).toBe(16);
  });

  test('is refused beyond the share of a pool, and then nothing has changed', async () => {
    const { manager, crowd } = managed([full()], { maxPinnedShare: 0.25 });
    const tokens = prompt(1, 20);
    await serve(manager, tokens);
    const before = manager.storageStatistics(0);
    expect(manager.pin(tokens)).toBeNull();
    expect(manager.storageStatistics(0)).toEqual(before);
    expect(manager.pin(tokens.slice(0, 16))?.numTokens).toBe(16);
    await serve(manager, prompt(2, 4));
    expect(manager.pin(prompt(2, 4))).toBeNull();
    await crowd();
    expect(manager.probeReuse(tokens)).toBe(16);
  });

  test.each([3, 4, 7, 11])(
    'keeps its length with a backoff of %i tokens, which are cut from the end of the path',
    async (backoff) => {
      const { manager, crowd } = managed([full(), windowed(8)], { slots: 16, reuseMatchBackoff: backoff });
      const tokens = prompt(1, 18);
      await serve(manager, tokens);
      const pin = manager.pin(tokens);
      expect(pin?.numTokens).toBe(manager.probeReuse(tokens));
      await crowd();
      expect(manager.probeReuse(tokens)).toBe(pin?.numTokens);
    },
  );

  test.each([16, 8])('stays on a path of windows of one token, which need no page at %i tokens', async (numTokens) => {
    const { manager, crowd } = managed([windowed(1)], { slots: 16 });
    const tokens = prompt(1, 16);
    await serve(manager, tokens);
    const pin = manager.pin(tokens.slice(0, numTokens));
    expect(pin?.numTokens).toBe(numTokens);
    await crowd();
    expect(manager.probeReuse(tokens)).toBeGreaterThanOrEqual(numTokens);
  });

  test('counts pages that several pins hold once', async () => {
    const { manager, crowd } = managed([full()], { maxPinnedShare: 0.25 });
    const tokens = prompt(1, 16);
    await serve(manager, tokens);
    const [first, second] = [manager.pin(tokens), manager.pin(tokens)];
    first?.release();
    await crowd();
    expect(manager.probeReuse(tokens)).toBe(16);
    second?.release();
    await crowd();
    expect(manager.probeReuse(tokens)).toBe(0);
  });

  test('releases itself when its time is over, as soon as somebody needs room', async () => {
    const { manager, clock, crowd } = managed();
    const tokens = prompt(1, 16);
    await serve(manager, tokens);
    const pin = manager.pin(tokens, undefined, { durationMs: 1000 });
    clock.now = 999;
    await crowd();
    expect([pin?.isHeld, manager.probeReuse(tokens)]).toEqual([true, 16]);
    clock.now = 1000;
    await crowd();
    expect([pin?.isHeld, manager.probeReuse(tokens)]).toEqual([false, 0]);
  });

  test('is one of its scope', async () => {
    const { manager } = managed();
    const tokens = prompt(1, 8);
    await serve(manager, tokens, { scope: { salt: 7 } });
    expect([manager.pin(tokens)?.numTokens, manager.pin(tokens, { salt: 7 })?.numTokens]).toEqual([0, 8]);
  });

  test('is nothing, and takes no room, when nothing of it was published', () => {
    const { manager } = managed([full()], { maxPinnedShare: 0 });
    expect(manager.pin(prompt(1, 8))?.numTokens).toBe(0);
  });

  test('keeps a manager from forgetting everything, not from closing', async () => {
    const { manager } = managed();
    const tokens = prompt(1, 8);
    await serve(manager, tokens);
    const pin = manager.pin(tokens);
    expect(() => manager.clearReusableBlocks()).toThrow(expect.objectContaining({ code: 'prefixes-pinned' }));
    expect(manager.probeReuse(tokens)).toBe(8);
    await manager.close();
    pin?.release();
    expect(pin?.isHeld).toBe(false);
  });

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('for %d milliseconds is refused', (durationMs) => {
    const { manager } = managed();
    expect(() => manager.pin([1], undefined, { durationMs })).toThrow(expect.objectContaining({ code: 'invalid-duration' }));
  });

  test.each([-0.1, 1.1, Number.NaN])('with a share of %d of all pools is refused', (maxPinnedShare) => {
    expect(() => managed([full()], { maxPinnedShare })).toThrow(expect.objectContaining({ code: 'invalid-pinned-share' }));
  });
});
