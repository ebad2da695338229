import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AttentionLifecycle, fullAttention, slidingWindow, ssmState } from '../lifecycle/lifecycle.ts';
import { isLive, matchNeeds, numTokensNeeded, snapshotBlock } from './match-needs.ts';

const liveBlocks = (lifecycle: AttentionLifecycle, endpoint: number, tokensPerBlock: number) =>
  Array.from({ length: 12 }, (_, ordinal) => ordinal).filter((ordinal) => isLive(lifecycle, ordinal, endpoint, tokensPerBlock));

describe('a match needs', () => {
  test.each<[string, AttentionLifecycle, number, number, number[]]>([
    ['every block of full attention', fullAttention(), 9, 4, [0, 1, 2]],
    ['no block beyond the endpoint', fullAttention(), 8, 4, [0, 1]],
    ['the block that a window of one block begins in', slidingWindow(4), 8, 4, [1]],
    ['only the partial tail when the window lies in it', slidingWindow(2), 9, 4, [2]],
    ['three blocks of a window of ten', slidingWindow(10), 20, 4, [2, 3, 4]],
    ['sinks and window apart', slidingWindow(6, { numSinkBlocks: 1 }), 20, 4, [0, 3, 4]],
    ['sinks and window together when they meet', slidingWindow(6, { numSinkBlocks: 3 }), 20, 4, [0, 1, 2, 3, 4]],
    ['no more sinks than there are blocks', slidingWindow(2, { numSinkBlocks: 3 }), 2, 4, [0]],
    ['no block at all of a window of one token at the end of a block', slidingWindow(1), 96, 32, []],
    ['one block of a window of one token just after it', slidingWindow(1), 97, 32, [3]],
    ['nothing at the start', slidingWindow(4, { numSinkBlocks: 1 }), 0, 4, []],
  ])('%s', (_, lifecycle, endpoint, tokensPerBlock, expected) => {
    expect(liveBlocks(lifecycle, endpoint, tokensPerBlock)).toEqual(expected);
  });

  test('the tokens of a live block up to the endpoint, and none of the others', () => {
    const needed = [0, 1, 2, 3, 4, 5, 6].map((ordinal) =>
      numTokensNeeded(slidingWindow(6, { numSinkBlocks: 1 }), ordinal, 22, 4),
    );
    expect(needed).toEqual([4, 0, 0, 0, 4, 2, 0]);
    expect(numTokensNeeded(slidingWindow(6, { numSinkBlocks: 1 }), 0, 3, 4)).toBe(3);
  });

  test('pages of attention in two ranges, and one exact snapshot of recurrent state', () => {
    expect(matchNeeds(slidingWindow(6, { numSinkBlocks: 1 }), 20, 4)).toEqual({
      kind: 'pages',
      sinks: { begin: 0, end: 1 },
      window: { begin: 3, end: 5 },
    });
    expect(matchNeeds(ssmState(), 9, 4)).toEqual({ kind: 'snapshot', blockOrdinal: 2, numTokens: 9 });
  });

  test('a snapshot from the block that holds the last token', () => {
    expect([1, 3, 4, 5, 8, 9].map((numTokens) => snapshotBlock(numTokens, 4))).toEqual([0, 0, 0, 1, 1, 2]);
  });

  test('exactly the blocks of both ranges', () => {
    fc.assert(
      fc.property(
        anyAttention,
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 6 }),
        (lifecycle, endpoint, tokensPerBlock) => {
          const needs = matchNeeds(lifecycle, endpoint, tokensPerBlock);
          if (needs.kind !== 'pages') throw new Error('attention needs pages');
          for (let ordinal = 0; ordinal < 50; ordinal++) {
            const listed = ordinal < needs.sinks.end || (needs.window.begin <= ordinal && ordinal < needs.window.end);
            expect(isLive(lifecycle, ordinal, endpoint, tokensPerBlock)).toBe(listed);
            expect(numTokensNeeded(lifecycle, ordinal, endpoint, tokensPerBlock) > 0).toBe(listed);
          }
        },
      ),
    );
  });
});

const anyAttention: fc.Arbitrary<AttentionLifecycle> = fc.oneof(
  fc.constant(fullAttention()),
  fc
    .tuple(fc.integer({ min: 1, max: 20 }), fc.nat(4))
    .map(([windowSize, numSinkBlocks]) => slidingWindow(windowSize, { numSinkBlocks })),
);
