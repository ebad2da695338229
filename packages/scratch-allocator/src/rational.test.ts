import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ceilMul, isGreater, rational } from './rational.ts';

it('reduces to lowest terms', () => {
  expect(rational(8, 64)).toEqual({ num: 1, den: 8 });
  expect(rational(3, 7)).toEqual({ num: 3, den: 7 });
  expect(rational(0, 5)).toEqual({ num: 0, den: 1 });
});

it('compares exactly where floating point sees no difference', () => {
  expect(isGreater({ num: 2 ** 25, den: 2 ** 25 + 1 }, { num: 2 ** 25 - 1, den: 2 ** 25 })).toBe(true);
  expect(isGreater({ num: 1, den: 3 }, { num: 2, den: 6 })).toBe(false);
});

it.each([
  [28, 1, 32, 1],
  [7, 1, 8, 1],
  [6, 1, 1, 6],
  [14, 1, 16, 1],
  [0, 2, 3, 0],
  [3, 1, 3, 1],
  [4, 1, 3, 2],
  [49, 1, 49, 1],
])('ceil(%i × %i/%i) = %i', (count, num, den, product) => {
  expect(ceilMul(count, { num, den })).toBe(product);
});

it('agrees with big integers', () => {
  fc.assert(
    fc.property(fc.nat(2 ** 31 - 1), fc.nat(2 ** 20), fc.integer({ min: 1, max: 2 ** 20 }), (count, num, den) => {
      const exact = (BigInt(count) * BigInt(num) + BigInt(den) - 1n) / BigInt(den);
      fc.pre(exact <= BigInt(Number.MAX_SAFE_INTEGER));
      expect(BigInt(ceilMul(count, { num, den }))).toBe(exact);
    }),
  );
});
