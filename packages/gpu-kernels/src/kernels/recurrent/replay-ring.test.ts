import { openGpu } from '@bufferwise-internal/webgpu-node';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { ComputeContext } from '../../kernel/compute-context.ts';
import { afterReplay, packReplay, type ReplayCursor, type ReplayRing, ringWords, settlesRing } from './replay-ring.ts';

const adapter = await openGpu({ dawnOptions: ['backend=null'] });
const device = await adapter.requestDevice({ label: 'null device' });
const context = ComputeContext.of(device);
afterAll(() => device.destroy());

const shape = { numHeads: 4, headDim: 6, stateSize: 10, numGroups: 2 };

describe('a replay ring', () => {
  test('has rows of values, keys and decays', () => {
    expect(ringWords('test', shape, { rows: 8, maxTokens: 4 })).toBe(8 * (24 + 20 + 4));
    expect(ringWords('test', shape, { rows: 8, maxTokens: 4, dtype: 'f16' })).toBe(8 * (12 + 10 + 4));
  });

  test('of f16 refuses rows that end in half a word', () => {
    const ring = { rows: 8, maxTokens: 4, dtype: 'f16' } as const;
    for (const odd of [{ headDim: 5 }, { stateSize: 7 }]) {
      expect(() => ringWords('test', { ...shape, ...odd }, ring)).toThrow(/half a word/);
      expect(() => ringWords('test', { ...shape, ...odd }, { ...ring, dtype: 'f32' })).not.toThrow();
    }
  });

  test.each([
    [1, 1],
    [7, 4],
    [8, 0],
    [2.5, 1],
  ])('of %d rows for %d tokens a step is refused', (rows, maxTokens) => {
    expect(() => ringWords('test', shape, { rows, maxTokens })).toThrow(expect.objectContaining({ code: 'kernel-layout' }));
    expect(ringWords('test', shape, { rows: 8, maxTokens: 4 })).toBeGreaterThan(0);
  });

  test('settles exactly when the largest step would not fit behind this one', () => {
    const ring = { rows: 8, maxTokens: 3 };
    expect([2, 3, 4].map((length) => settlesRing(ring, { position: 20, length }, 2))).toEqual([false, false, true]);
  });

  test('takes back what is not accepted by a smaller position and length', () => {
    expect(afterReplay({ position: 20, length: 4 }, false, 1)).toEqual({ position: 21, length: 5 });
    expect(afterReplay({ position: 20, length: 4 }, true, 2)).toEqual({ position: 22, length: 2 });
    expect(afterReplay({ position: 20, length: 4 }, true, 0)).toEqual({ position: 20, length: 0 });
  });

  test('has room for every step that it may be asked for, and loses no row', () => {
    const steps = fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 60 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.nat({ max: 9 }), steps, (maxTokens, more, drawn) => {
        const ring: ReplayRing = { rows: 2 * maxTokens + more, maxTokens };
        let cursor: ReplayCursor = { position: 0, length: 0 };
        let checkpoint = 0;
        for (const [a, b] of drawn) {
          const numTokens = a % (maxTokens + 1);
          // Rows that are read and rows that are written never meet.
          expect(cursor.length + numTokens).toBeLessThanOrEqual(ring.rows);
          const settled = settlesRing(ring, cursor, numTokens);
          if (settled) checkpoint = cursor.position;
          cursor = afterReplay(cursor, settled, b % (numTokens + 1));
          expect(checkpoint + cursor.length).toBe(cursor.position);
        }
      }),
    );
  });
});

describe('the requests of a step that replays', () => {
  const ring = { rows: 8, maxTokens: 3 };
  const pack = (tokens: number[], cursors: ReplayCursor[]) => packReplay(context.step('test'), ring, tokens, cursors);

  test('have tokens and cursors that fit the ring', () => {
    expect(
      pack(
        [3, 0, 1],
        [
          { position: 9, length: 5 },
          { position: 0, length: 0 },
          { position: 8, length: 7 },
        ],
      ).requests,
    ).toMatchObject({
      numRequests: 3,
      numTokens: 4,
    });
  });

  test.each<[string, number[], ReplayCursor[]]>([
    ['more tokens than a step takes', [4], [{ position: 9, length: 0 }]],
    ['more rows than the ring has', [3], [{ position: 9, length: 6 }]],
    ['a ring longer than the sequence', [1], [{ position: 1, length: 2 }]],
    ['a negative position', [1], [{ position: -1, length: 0 }]],
    ['half a token', [1], [{ position: 2, length: 0.5 }]],
    ['a position beyond 32 bits', [1], [{ position: 2 ** 32, length: 0 }]],
    ['a cursor too few', [1, 1], [{ position: 2, length: 0 }]],
  ])('are refused with %s', (_, tokens, cursors) => {
    expect(() => pack(tokens, cursors)).toThrow(expect.objectContaining({ code: 'kernel-dispatch' }));
  });
});
