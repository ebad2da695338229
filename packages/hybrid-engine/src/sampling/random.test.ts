import { expect, it } from 'vitest';
import { Random } from './random.ts';

it('one seed gives one sequence, another seed another', () => {
  const draw = (seed: number) => {
    const random = new Random(seed);
    return Array.from({ length: 20 }, () => random.next());
  };
  expect(draw(7)).toEqual(draw(7));
  expect(draw(7)).not.toEqual(draw(8));
});

it('numbers are in [0, 1) and evenly spread, also for neighbouring seeds', () => {
  const buckets = new Array<number>(16).fill(0);
  for (let seed = 0; seed < 100; seed++) {
    const random = new Random(seed);
    for (let i = 0; i < 160; i++) buckets[Math.floor(random.next() * 16)]++;
  }
  // 16,000 draws over 16 buckets: 1,000 each, with a standard deviation of 31.
  for (const count of buckets) expect(Math.abs(count - 1000)).toBeLessThan(160);
});

it('the sequence of a seed stays what it is between versions', () => {
  const random = new Random(42);
  expect(Array.from({ length: 3 }, () => random.next() * 2 ** 32)).toMatchInlineSnapshot(`
    [
      2837322924,
      544945897,
      479756282,
    ]
  `);
});
