import { readVectors } from '@bufferwise-internal/test-kit';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fullAttention, type Lifecycle, slidingWindow, ssmState } from './lifecycle.ts';
import { staleBegin, staleEnd, staleRange } from './stale-range.ts';

interface RangeCase {
  tokensPerBlock: number;
  lifecycle: Lifecycle;
  historyLength: number;
  stale: [begin: number, end: number];
}

describe('the stale range', () => {
  const cases = readVectors<RangeCase>('ranges').map((vector, index) => [index, vector] as const);

  test.each(cases)('agrees with published vector %i', (_, { lifecycle, historyLength, tokensPerBlock, stale: [begin, end] }) => {
    expect(staleRange(lifecycle, historyLength, tokensPerBlock)).toEqual({ begin, end });
  });

  test.each([
    // history, window, sink blocks, tokens per block, begin, end
    [8, 2, 0, 4, 0, 1],
    [9, 2, 0, 4, 0, 2],
    [8, 4, 0, 4, 0, 1],
    [20, 10, 0, 4, 0, 2],
    [23, 10, 0, 4, 0, 3],
    [20, 6, 1, 4, 1, 3],
    [23, 8, 0, 4, 0, 4],
    [24, 8, 0, 4, 0, 4],
    [95, 1, 0, 32, 0, 2],
    [96, 1, 0, 32, 0, 3],
    [97, 1, 0, 32, 0, 3],
    [127, 64, 0, 32, 0, 2],
    [128, 64, 0, 32, 0, 2],
    [2, 2, 3, 4, 1, 1],
    [2048, 128, 1, 32, 1, 60],
    [0, 1, 0, 4, 0, 0],
    [0, 8, 2, 4, 0, 0],
  ])(
    'after %i tokens with window %i and %i sink blocks at %i tokens a block is %i up to %i',
    (history, window, sinks, tpb, begin, end) => {
      expect(staleRange(slidingWindow(window, { numSinkBlocks: sinks }), history, tpb)).toEqual({ begin, end });
    },
  );

  test('moves on when, and only when, the last token of a block leaves the window', () => {
    const ends = [5, 6, 7, 8, 9, 10, 11].map((history) => staleRange(slidingWindow(4), history, 4).end);
    expect(ends).toEqual([0, 0, 1, 1, 1, 1, 2]);
  });

  test('of attention without a window is empty, and of recurrent state every whole block', () => {
    expect(staleRange(fullAttention(), 100, 4)).toEqual({ begin: 0, end: 0 });
    expect([7, 8, 9].map((history) => staleRange(ssmState(), history, 4))).toEqual([
      { begin: 0, end: 1 },
      { begin: 0, end: 2 },
      { begin: 0, end: 2 },
    ]);
  });

  test('does not depend on the policy', () => {
    fc.assert(
      fc.property(windowed, length, blockSize, (lifecycle, history, tpb) => {
        expect(staleRange({ ...lifecycle, policy: 'optional' }, history, tpb)).toEqual(staleRange(lifecycle, history, tpb));
      }),
    );
  });

  test('holds the blocks without a token that is a sink or that a later token sees', () => {
    fc.assert(
      fc.property(windowed, length, blockSize, (lifecycle, history, tpb) => {
        const range = staleRange(lifecycle, history, tpb);
        expect(range).toEqual({ begin: staleBegin(lifecycle, history, tpb), end: staleEnd(lifecycle, history, tpb) });
        for (let ordinal = 0; ordinal * tpb < history; ordinal++) {
          const lastToken = (ordinal + 1) * tpb - 1;
          const firstSeen = history - lifecycle.windowSize + 1; // by the token about to be written
          const needed = ordinal < lifecycle.numSinkBlocks || lastToken >= firstSeen;
          expect(range.begin <= ordinal && ordinal < range.end).toBe(!needed);
        }
      }),
    );
  });

  test('never gives a block back while history grows', () => {
    fc.assert(
      fc.property(windowed, length, fc.nat(40), blockSize, (lifecycle, history, growth, tpb) => {
        const before = staleRange(lifecycle, history, tpb);
        const after = staleRange(lifecycle, history + growth, tpb);
        expect(after.begin).toBeGreaterThanOrEqual(before.begin);
        expect(after.end).toBeGreaterThanOrEqual(before.end);
        if (before.begin < before.end) expect(after.begin).toBe(before.begin);
      }),
    );
  });
});

const length = fc.nat(200);
const blockSize = fc.integer({ min: 1, max: 9 });
const windowed = fc
  .record({ windowSize: fc.integer({ min: 1, max: 60 }), numSinkBlocks: fc.nat(4) })
  .map(({ windowSize, numSinkBlocks }) => ({ ...slidingWindow(windowSize, { numSinkBlocks }), windowSize }));
