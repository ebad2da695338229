import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { planChunks } from './chunk-plan.ts';

const plan = (input: Partial<Parameters<typeof planChunks>[0]>) =>
  planChunks({ matched: 0, promptLength: 300, chunkTokens: 128, turnBorders: [], sharedDepth: 0, minGain: 16, ...input });

describe('a prompt is cut', () => {
  test('on one grid for all requests, and before its last token', () => {
    expect(plan({})).toEqual([128, 256, 299, 300]);
    expect(plan({ matched: 130 })).toEqual([256, 299, 300]);
    expect(plan({ matched: 128 })).toEqual([256, 299, 300]);
    expect(plan({ matched: 127 })).toEqual([128, 256, 299, 300]);
  });

  test('at the borders of its turns', () => {
    expect(plan({ turnBorders: [40, 200] })).toEqual([40, 128, 200, 256, 299, 300]);
    expect(plan({ turnBorders: [40, 200], matched: 40 })).toEqual([128, 200, 256, 299, 300]);
  });

  test('where others knew its path but could not continue, if that gains enough', () => {
    expect(plan({ sharedDepth: 100 })).toEqual([100, 128, 256, 299, 300]);
    expect(plan({ sharedDepth: 100, matched: 84 })).toEqual([100, 128, 256, 299, 300]);
    expect(plan({ sharedDepth: 100, matched: 85 })).toEqual([128, 256, 299, 300]);
  });

  test('nowhere, when it has one token', () => {
    expect(plan({ promptLength: 1 })).toEqual([1]);
    expect(plan({ promptLength: 300, matched: 299 })).toEqual([300]);
  });
});

test('chunks are in order, never longer than allowed, and end with the prompt', () => {
  fc.assert(
    fc.property(
      fc.nat(400),
      fc.integer({ min: 1, max: 400 }),
      fc.integer({ min: 1, max: 64 }),
      fc.nat(500),
      (matched, rest, chunkTokens, sharedDepth) => {
        const promptLength = matched + rest;
        const ends = plan({ matched, promptLength, chunkTokens, sharedDepth: Math.min(sharedDepth, promptLength) });
        expect(ends.at(-1)).toBe(promptLength);
        let start = matched;
        for (const end of ends) {
          expect(end - start).toBeGreaterThan(0);
          expect(end - start).toBeLessThanOrEqual(chunkTokens);
          start = end;
        }
      },
    ),
  );
});
