import { expect, test } from 'vitest';
import { floatsOfHalves } from './half.ts';

test('halves of every kind become the same numbers', () => {
  const halves: [bits: number, value: number][] = [
    [0x0000, 0],
    [0x8000, -0],
    [0x0001, 2 ** -24],
    [0x03ff, 1023 * 2 ** -24],
    [0x0400, 2 ** -14],
    [0x3c00, 1],
    [0xc000, -2],
    [0x3555, 0.333251953125],
    [0x7bff, 65504],
    [0x7c00, Number.POSITIVE_INFINITY],
    [0xfc00, Number.NEGATIVE_INFINITY],
    [0x7e00, Number.NaN],
  ];
  expect([...floatsOfHalves(Uint16Array.from(halves, ([bits]) => bits))]).toEqual(halves.map(([, value]) => value));
});
