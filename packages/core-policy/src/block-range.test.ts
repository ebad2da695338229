import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { alignDown, divDown, divUp } from './block-range.ts';

const dividend = fc.oneof(fc.maxSafeNat(), fc.nat(1000));
const divisor = fc.oneof(fc.maxSafeNat(), fc.nat(64)).map((value) => Math.max(1, value));

describe('whole-number division', () => {
  test.each([
    [0, 4, 0, 0, 0],
    [1, 4, 0, 1, 0],
    [3, 4, 0, 1, 0],
    [4, 4, 1, 1, 4],
    [5, 4, 1, 2, 4],
    [-1, 4, -1, -0, null],
    [Number.MAX_SAFE_INTEGER, 2, 2 ** 52 - 1, 2 ** 52, 2 ** 53 - 2],
  ])('of %d by %d rounds down to %d and up to %d', (a, b, down, up, aligned) => {
    expect(divDown(a, b)).toBe(down);
    expect(divUp(a, b)).toBe(up);
    if (aligned !== null) expect(alignDown(a, b)).toBe(aligned);
  });

  test('is exact for every safe integer', () => {
    fc.assert(
      fc.property(dividend, divisor, (a, b) => {
        const down = BigInt(a) / BigInt(b);
        expect(BigInt(divDown(a, b))).toBe(down);
        expect(BigInt(divUp(a, b))).toBe((BigInt(a) + BigInt(b) - 1n) / BigInt(b));
        expect(BigInt(alignDown(a, b))).toBe(down * BigInt(b));
      }),
    );
  });
});
