import { expect, test } from 'vitest';
import { mostLikely } from './most-likely.ts';

const logits = Float32Array.of(1, 3, 3, Number.NEGATIVE_INFINITY, 2);

test('the most likely tokens come best first, and of equals the lowest id', () => {
  expect(mostLikely(logits, 3).map(({ token }) => token)).toEqual([1, 2, 4]);
});

test('forbidden tokens never come, so there may be fewer', () => {
  expect(mostLikely(logits, 9).map(({ token }) => token)).toEqual([1, 2, 4, 0]);
});

test('probabilities are of all tokens together', () => {
  const sum = mostLikely(logits, 9).reduce((total, { logProbability }) => total + Math.exp(logProbability), 0);
  expect(sum).toBeCloseTo(1, 6);
});

test.each([[[Number.NEGATIVE_INFINITY]], [[Number.NaN, Number.NaN]], [[1, Number.POSITIVE_INFINITY]]])(
  'logits %j are refused',
  (values) => {
    expect(() => mostLikely(Float32Array.from(values), 1)).toThrow(expect.objectContaining({ code: 'sampling-logits' }));
  },
);
