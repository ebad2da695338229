import { expect, test } from 'vitest';
import { halfBits, halfNumber } from './half-floats.ts';

test('every number of binary16 comes back as its own bits', () => {
  for (let bits = 0; bits < 0x10000; bits++) {
    const number = halfNumber(bits);
    if (Number.isNaN(number)) expect(halfNumber(halfBits(number))).toBeNaN();
    else expect(halfBits(number)).toBe(bits);
  }
});

test('known numbers, and ties to the even one', () => {
  const known: [number, number][] = [
    [1, 0x3c00],
    [-2, 0xc000],
    [65504, 0x7bff],
    [65520, 0x7c00],
    [2 ** -24, 0x0001],
    [2 ** -14, 0x0400],
    [1 + 2 ** -11, 0x3c00],
    [1 + 3 * 2 ** -11, 0x3c02],
    [2 - 2 ** -12, 0x4000],
  ];
  for (const [number, bits] of known) expect(halfBits(number)).toBe(bits);
});
