import { readVectors } from '@bufferwise-internal/test-kit';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type CacheConfigInput, defineCacheConfig } from '../config/cache-config.ts';
import {
  type AttentionLifecycle,
  fullAttention,
  type Lifecycle,
  lifecycleId,
  slidingWindow,
  ssmState,
} from '../lifecycle/lifecycle.ts';
import { LifecycleRegistry } from '../lifecycle/lifecycle-registry.ts';
import { numTokensNeeded } from './match-needs.ts';
import { canCompleteAt, coverageAt } from './optional-coverage.ts';

interface ReuseCase {
  config: CacheConfigInput;
  ops: { op: string; expect?: { reuseStatus: { group: number; complete: boolean; endpoint: number; coverage: number[][] }[] } }[];
}

describe('a complete group covers', () => {
  test.each<[string, Lifecycle, number, number, number[][]]>([
    ['everything, under full attention', fullAttention(), 8, 4, [[0, 8]]],
    ['everything up to the endpoint in a partial block', fullAttention(), 9, 4, [[0, 9]]],
    ['the live window', slidingWindow(4), 8, 4, [[4, 8]]],
    ['the live window of an optional group', slidingWindow(2, { policy: 'optional' }), 8, 4, [[4, 8]]],
    ['the partial tail of the window', slidingWindow(2), 9, 4, [[8, 9]]],
    ['everything while the window is not full', slidingWindow(100), 9, 4, [[0, 9]]],
    [
      'sinks and window apart',
      slidingWindow(6, { numSinkBlocks: 1, policy: 'optional' }),
      20,
      4,
      [
        [0, 4],
        [12, 20],
      ],
    ],
    ['whole sink blocks up to the endpoint', slidingWindow(2, { numSinkBlocks: 3 }), 6, 4, [[0, 6]]],
    ['sinks and window as one range where they meet', slidingWindow(10, { numSinkBlocks: 2 }), 20, 4, [[0, 20]]],
    ['sinks alone where the window is empty', slidingWindow(1, { numSinkBlocks: 1 }), 8, 4, [[0, 4]]],
    ['nothing where window and sinks are empty', slidingWindow(1), 8, 4, []],
    ['all of the state', ssmState(), 7, 4, [[0, 7]]],
    ['all of an optional state, also inside a block', ssmState('optional'), 7, 4, [[0, 7]]],
  ])('%s', (_, lifecycle, endpoint, tokensPerBlock, expected) => {
    expect(canCompleteAt(lifecycle, endpoint, tokensPerBlock)).toBe(true);
    expect(coverageAt(lifecycle, endpoint, tokensPerBlock)).toEqual(expected);
  });

  test.each<[string, Lifecycle, number]>([
    ['optional attention inside a block', fullAttention({ policy: 'optional' }), 7],
    ['optional windowed attention just after a block', slidingWindow(4, { policy: 'optional' }), 9],
    ['private attention', fullAttention({ policy: 'private' }), 8],
    ['private state', ssmState('private'), 8],
    ['required attention at the start', fullAttention(), 0],
    ['optional attention at the start', fullAttention({ policy: 'optional' }), 0],
    ['state at the start', ssmState(), 0],
  ])('nothing, as it cannot be complete: %s', (_, lifecycle, endpoint) => {
    expect(canCompleteAt(lifecycle, endpoint, 4)).toBe(false);
    expect(coverageAt(lifecycle, endpoint, 4)).toEqual([]);
  });

  test.each(['reuse', 'reuse-scratch'] as const)('what every complete group of the published %s vectors covers', (name) => {
    let numComplete = 0;
    for (const { config: given, ops } of readVectors<ReuseCase>(name)) {
      const config = defineCacheConfig(given);
      const registry = LifecycleRegistry.fromConfig(config);
      for (const { op, expect: expected } of ops) {
        if (op !== 'create') continue;
        for (const { group, complete, endpoint, coverage } of expected?.reuseStatus ?? []) {
          const lifecycle = registry.get(lifecycleId(group));
          if (!complete) continue;
          numComplete++;
          expect(canCompleteAt(lifecycle, endpoint, config.tokensPerBlock)).toBe(true);
          expect(coverageAt(lifecycle, endpoint, config.tokensPerBlock)).toEqual(coverage);
        }
      }
    }
    expect(numComplete).toBeGreaterThan(0);
  });

  test('exactly the tokens that a match there needs, in ranges that do not touch', () => {
    fc.assert(
      fc.property(anyAttention, fc.nat(40), fc.integer({ min: 1, max: 6 }), (lifecycle, endpoint, tokensPerBlock) => {
        fc.pre(canCompleteAt(lifecycle, endpoint, tokensPerBlock));
        const ranges = coverageAt(lifecycle, endpoint, tokensPerBlock);
        for (let token = 0; token < endpoint; token++) {
          const ordinal = Math.floor(token / tokensPerBlock);
          const needed = token - ordinal * tokensPerBlock < numTokensNeeded(lifecycle, ordinal, endpoint, tokensPerBlock);
          expect(ranges.some(([begin, end]) => begin <= token && token < end)).toBe(needed);
        }
        ranges.forEach(([begin, end], index) => {
          expect(begin).toBeLessThan(end);
          if (index > 0) expect(begin).toBeGreaterThan(ranges[index - 1][1]);
        });
      }),
    );
  });
});

const anyAttention: fc.Arbitrary<AttentionLifecycle> = fc
  .record({
    windowSize: fc.option(fc.integer({ min: 1, max: 20 })),
    numSinkBlocks: fc.nat(4),
    policy: fc.constantFrom('required' as const, 'optional' as const),
  })
  .map(({ windowSize, ...options }) =>
    windowSize === null ? fullAttention({ policy: options.policy }) : slidingWindow(windowSize, options),
  );
