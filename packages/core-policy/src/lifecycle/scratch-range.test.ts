import { readVectors } from '@bufferwise-internal/test-kit';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fullAttention, type Lifecycle, slidingWindow, ssmState } from './lifecycle.ts';
import { scratchBegin, scratchEnd, scratchRange } from './scratch-range.ts';
import { staleRange } from './stale-range.ts';

interface RangeCase {
  tokensPerBlock: number;
  lifecycle: Lifecycle;
  historyLength: number;
  capacity: number;
  maxRewindLen: number;
  scratch: [begin: number, end: number] | null;
}

describe('the scratch range', () => {
  const cases = readVectors<RangeCase>('ranges').map((vector, index) => [index, vector] as const);

  test.each(cases)('agrees with published vector %i', (_, { lifecycle, tokensPerBlock, scratch, ...step }) => {
    const range = scratchRange(lifecycle, step, tokensPerBlock);
    if (scratch === null) expect(range.end).toBe(range.begin);
    else expect(range).toEqual({ begin: scratch[0], end: scratch[1] });
  });

  test.each<[number, number, number, number, number, number, [number, number] | null]>([
    // history, capacity, window, sink blocks, tokens per block, rewind, range
    [0, 256, 32, 0, 32, 0, [0, 7]],
    [0, 256, 32, 0, 32, 64, [0, 5]],
    [0, 256, 64, 0, 32, 0, [0, 6]],
    [0, 256, 64, 0, 32, 32, [0, 5]],
    [256, 352, 64, 0, 32, 0, [8, 9]],
    [256, 352, 64, 0, 32, 32, null],
    [256, 352, 256, 0, 32, 0, null],
    [0, 16, 4, 0, 4, 0, [0, 3]],
    [0, 16, 4, 0, 4, 4, [0, 2]],
    [0, 64, 8, 0, 4, 0, [0, 14]],
    [0, 512, 128, 1, 32, 0, [1, 12]],
    [0, 1024, 128, 0, 32, 0, [0, 28]],
    [0, 0, 1, 0, 4, 0, null],
    [0, 4, 1, 0, 4, 8, null],
  ])('from %i to %i tokens, window %i, %i sink blocks, %i tokens a block, rewind %i, is %o under every policy', (...row) => {
    const [historyLength, capacity, window, numSinkBlocks, tokensPerBlock, maxRewindLen, expected] = row;
    for (const policy of ['required', 'optional', 'private'] as const) {
      const lifecycle = slidingWindow(window, { numSinkBlocks, policy });
      const range = scratchRange(lifecycle, { historyLength, capacity, maxRewindLen }, tokensPerBlock);
      expect(range.begin === range.end ? null : [range.begin, range.end]).toEqual(expected);
    }
  });

  test('leaves an optional group the pages of its last whole block', () => {
    const step = { historyLength: 0, capacity: 18, maxRewindLen: 0 };
    expect(scratchRange(slidingWindow(2, { policy: 'optional' }), step, 4)).toEqual({ begin: 0, end: 3 });
    for (const policy of ['required', 'private'] as const) {
      expect(scratchRange(slidingWindow(2, { policy }), step, 4)).toEqual({ begin: 0, end: 4 });
    }
  });

  test('leaves out a block that history has begun to fill', () => {
    const ranges = [3, 4, 5].map((historyLength) =>
      scratchRange(slidingWindow(4), { historyLength, capacity: 32, maxRewindLen: 0 }, 4),
    );
    expect(ranges.map(({ begin }) => begin)).toEqual([1, 1, 2]);
  });

  test('is empty without a window and for recurrent state', () => {
    const step = { historyLength: 0, capacity: 64, maxRewindLen: 0 };
    for (const lifecycle of [fullAttention(), fullAttention({ policy: 'optional' }), ssmState()]) {
      const { begin, end } = scratchRange(lifecycle, step, 4);
      expect(end).toBe(begin);
    }
  });

  test('holds the new blocks that are stale at the settled length, and no other', () => {
    fc.assert(
      fc.property(
        lifecycle,
        fc.nat(60),
        fc.nat(100),
        fc.nat(30),
        blockSize,
        (meaning, historyLength, growth, maxRewindLen, tpb) => {
          const capacity = historyLength + growth;
          const range = scratchRange(meaning, { historyLength, capacity, maxRewindLen }, tpb);
          expect(range.begin).toBe(scratchBegin(meaning, historyLength, capacity, maxRewindLen, tpb));
          expect(range.end).toBe(scratchEnd(meaning, historyLength, capacity, maxRewindLen, tpb));
          expect(range.end).toBeGreaterThanOrEqual(range.begin);
          let settled = Math.max(0, capacity - maxRewindLen);
          if (meaning.policy === 'optional') settled -= settled % tpb;
          const stale = staleRange(meaning, settled, tpb);
          for (let ordinal = 0; ordinal * tpb < capacity; ordinal++) {
            const isNew = ordinal * tpb >= historyLength;
            const isStale = stale.begin <= ordinal && ordinal < stale.end;
            expect(range.begin <= ordinal && ordinal < range.end).toBe(isNew && isStale);
          }
        },
      ),
    );
  });
});

const blockSize = fc.integer({ min: 1, max: 9 });
const lifecycle = fc
  .record({
    windowSize: fc.integer({ min: 1, max: 40 }),
    numSinkBlocks: fc.nat(4),
    policy: fc.constantFrom('required' as const, 'optional' as const, 'private' as const),
  })
  .map(({ windowSize, ...options }) => slidingWindow(windowSize, options));
