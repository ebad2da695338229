import { describe, expect, test } from 'vitest';
import { fromHalves, toHalves } from './float16.ts';

describe('halves', () => {
  test('are the numbers that the format says', () => {
    const known: [number, number][] = [
      [0x0000, 0],
      [0x0001, 2 ** -24],
      [0x03ff, 1023 * 2 ** -24],
      [0x0400, 2 ** -14],
      [0x3555, 0.333251953125],
      [0x3c00, 1],
      [0xc000, -2],
      [0x7bff, 65_504],
      [0x7c00, Number.POSITIVE_INFINITY],
      [0xfc00, Number.NEGATIVE_INFINITY],
    ];
    expect([...fromHalves(Uint16Array.from(known, ([half]) => half))]).toEqual(known.map(([, value]) => value));
    expect(fromHalves(Uint16Array.of(0x7e01))).toEqual(Float32Array.of(Number.NaN));
  });

  test('come back from their numbers, all of them', () => {
    const all = Uint16Array.from({ length: 1 << 16 }, (_, half) => half).filter((half) => (half & 0x7fff) <= 0x7c00);
    expect(toHalves(fromHalves(all))).toEqual(all);
  });

  test('are the nearest to a number, and the even one of two', () => {
    const finite = fromHalves(Uint16Array.from({ length: 0x7c00 }, (_, half) => half));
    const middles = finite.subarray(1).map((value, i) => (value + finite[i]) / 2);
    const above = middles.map((value) => value * (1 + 2 ** -22));
    const below = middles.map((value) => value * (1 - 2 ** -22));
    expect(toHalves(above)).toEqual(Uint16Array.from(above, (_, i) => i + 1));
    expect(toHalves(below)).toEqual(Uint16Array.from(below, (_, i) => i));
    expect(toHalves(middles)).toEqual(Uint16Array.from(middles, (_, i) => i + (i & 1)));
  });

  test('beyond the largest are infinite', () => {
    expect([...toHalves(Float32Array.of(65_519.99, 65_520, -1e30, Number.NaN))]).toEqual([0x7bff, 0x7c00, 0xfc00, 0x7e00]);
  });
});
