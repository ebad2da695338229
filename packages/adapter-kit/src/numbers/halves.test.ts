import { expect, test } from 'vitest';
import { decodeHalf, decodeHalves, encodeHalf, encodeHalves } from './halves.ts';

const ALL = Uint16Array.from({ length: 1 << 16 }, (_, half) => half);
const NUMBERS = ALL.filter((half) => (half & 0x7fff) <= 0x7c00);

test('every finite half is the value of its fields', () => {
  for (const half of ALL) {
    const exponent = (half >> 10) & 31;
    if (exponent === 31) continue;
    const fraction = (half & 1023) / 1024;
    const magnitude = exponent === 0 ? fraction * 2 ** -14 : (1 + fraction) * 2 ** (exponent - 15);
    expect(decodeHalf(half)).toBe(half & 0x8000 ? -magnitude : magnitude);
  }
});

test.each([
  [0x0000, 0],
  [0x8000, -0],
  [0x0001, 2 ** -24],
  [0x03ff, 1023 * 2 ** -24],
  [0x0400, 2 ** -14],
  [0x3555, 0.333251953125],
  [0xc000, -2],
  [0x7bff, 65_504],
  [0x7c00, Number.POSITIVE_INFINITY],
  [0xfc00, Number.NEGATIVE_INFINITY],
])('the half with bits %i is %d, and back', (half, value) => {
  expect(decodeHalf(half)).toBe(value);
  expect(encodeHalf(value)).toBe(half);
});

test('what is no number stays none', () => {
  for (const half of [0x7c01, 0x7e00, 0xffff]) {
    expect(decodeHalf(half)).toBeNaN();
    expect(decodeHalf(encodeHalf(decodeHalf(half)))).toBeNaN();
  }
});

test('arrays are converted number by number', () => {
  expect(decodeHalves(ALL)).toEqual(Float32Array.from(ALL, decodeHalf));
  expect(encodeHalves(decodeHalves(NUMBERS))).toEqual(NUMBERS);
});

test('halves are the nearest to a number, and the even one of two, of either sign', () => {
  const finite = decodeHalves(ALL.subarray(0, 0x7c00));
  const middles = finite.subarray(1).map((value, i) => (value + finite[i]) / 2);
  const above = middles.map((value) => value * (1 + 2 ** -22));
  const below = middles.map((value) => value * (1 - 2 ** -22));
  expect(encodeHalves(above)).toEqual(Uint16Array.from(above, (_, i) => i + 1));
  expect(encodeHalves(below)).toEqual(Uint16Array.from(below, (_, i) => i));
  expect(encodeHalves(middles)).toEqual(Uint16Array.from(middles, (_, i) => i + (i & 1)));
  expect(encodeHalves(middles.map((value) => -value))).toEqual(Uint16Array.from(middles, (_, i) => (i + (i & 1)) | 0x8000));
});

test('numbers beyond the largest half are infinite', () => {
  expect([65_519.99, 65_520, -1e30, Number.NaN].map(encodeHalf)).toEqual([0x7bff, 0x7c00, 0xfc00, 0x7e00]);
});
