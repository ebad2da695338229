import { expect, test } from 'vitest';
import { decodeHalf, encodeHalf } from './half-numbers.ts';

test('every half number is what it was after a way through a whole one', () => {
  for (let half = 0; half < 1 << 16; half++) {
    const isNumber = (half & 0x7fff) <= 0x7c00;
    if (isNumber) expect(encodeHalf(decodeHalf(half)), `0x${half.toString(16)}`).toBe(half);
    else expect([decodeHalf(half), decodeHalf(encodeHalf(decodeHalf(half)))]).toEqual([Number.NaN, Number.NaN]);
  }
});

test('whatever lies between two half numbers becomes the nearer one, and in the middle the even one', () => {
  for (let half = 0; half < 0x7bff; half += 3) {
    const [low, high] = [decodeHalf(half), decodeHalf(half + 1)];
    const middle = (low + high) / 2;
    const even = half % 2 === 0 ? half : half + 1;
    expect(encodeHalf(low + (high - low) * 0.49), `0x${half.toString(16)}`).toBe(half);
    expect(encodeHalf(middle)).toBe(even);
    expect(encodeHalf(-middle)).toBe(even | 0x8000);
    expect(encodeHalf(low + (high - low) * 0.51)).toBe(half + 1);
  }
});

test.each([
  [0, 0],
  [-0, 0x8000],
  [65504, 0x7bff],
  [65519, 0x7bff],
  [65520, 0x7c00],
  [Number.POSITIVE_INFINITY, 0x7c00],
  [-1e30, 0xfc00],
  [2 ** -26, 0],
])('%d is 0x%s as a half number', (number, half) => {
  expect(encodeHalf(number)).toBe(half);
});
