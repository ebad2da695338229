import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { planChunks } from './chunk-plan.ts';

const plan = (input: Partial<Parameters<typeof planChunks>[0]>) =>
  planChunks({ matched: 0, promptLength: 300, chunkTokens: 128, snapshotPoints: [], ...input });

describe('a prompt is cut', () => {
  test('on one grid for all requests', () => {
    expect(plan({})).toEqual([128, 256, 300]);
    expect(plan({ matched: 130 })).toEqual([256, 300]);
    expect(plan({ matched: 128 })).toEqual([256, 300]);
    expect(plan({ matched: 127 })).toEqual([128, 256, 300]);
  });

  test('where snapshots are worth having, once at each', () => {
    expect(plan({ snapshotPoints: [40, 200, 256, 299, 300] })).toEqual([40, 128, 200, 256, 299, 300]);
    expect(plan({ snapshotPoints: [40, 200], matched: 40 })).toEqual([128, 200, 256, 300]);
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
      (matched, rest, chunkTokens, point) => {
        const promptLength = matched + rest;
        const ends = plan({ matched, promptLength, chunkTokens, snapshotPoints: [Math.min(point, promptLength)] });
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
