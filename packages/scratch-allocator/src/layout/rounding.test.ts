import { expect, it } from 'vitest';
import { roundHalfEven, roundUp } from './rounding.ts';

it('rounds up to whole steps', () => {
  expect([0, 1, 7, 8, 9].map((value) => roundUp(value, 8))).toEqual([0, 8, 8, 8, 16]);
});

it('rounds halves to the even neighbour, and nothing else', () => {
  expect([0.5, 1.5, 2.5, 3.5].map(roundHalfEven)).toEqual([0, 2, 2, 4]);
  expect([0, 0.49, 0.51, 2, 2.4999, 2.5001].map(roundHalfEven)).toEqual([0, 0, 1, 2, 2, 3]);
});
