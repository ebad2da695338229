import { expect, test } from 'vitest';
import { quantisedPageWriteReference } from './quantised-page-write.reference.ts';

/** One request, one head of 4 numbers, pages of two tokens; what nobody wrote is 99. */
function target() {
  const places = { table: [1, 0], tableStride: 2, tokensPerPage: 2 };
  return {
    ...places,
    pool: new Array<number>(16).fill(99),
    numbersPerWord: 4,
    pageStrideWords: 2,
    scales: { ...places, pool: [Number.NaN, Number.NaN], pageStrideWords: 1 },
  };
}

const sizes = { numKvHeads: 1, headDim: 4 };
const row = (...numbers: number[]) => numbers.flatMap((number) => [number, 0, 0, 0]);

test('the largest number of a page is 127 of its units', () => {
  const pages = target();
  const rows = row(1.27, -2.54, 10);
  quantisedPageWriteReference({ ...sizes, target: pages, rows, queryStart: [0, 3], contextLength: [3] });
  expect(pages.scales.pool).toEqual([10 / 127, 0.02]);
  expect(pages.pool).toEqual([127, 0, 0, 0, 99, 99, 99, 99, 64, 0, 0, 0, -127, 0, 0, 0]);
});

test('a larger number makes the units of its page larger, and rounds the older rows again', () => {
  const pages = target();
  quantisedPageWriteReference({ ...sizes, target: pages, rows: row(1.27), queryStart: [0, 1], contextLength: [1] });
  expect(pages.scales.pool[1]).toBe(0.01);
  quantisedPageWriteReference({ ...sizes, target: pages, rows: row(5.08), queryStart: [0, 1], contextLength: [2] });
  expect(pages.scales.pool[1]).toBe(0.04);
  expect(pages.pool.slice(8)).toEqual([32, 0, 0, 0, 127, 0, 0, 0]);
  quantisedPageWriteReference({ ...sizes, target: pages, rows: row(0.04), queryStart: [0, 1], contextLength: [2] });
  expect(pages.scales.pool[1]).toBe(0.04);
  expect(pages.pool.slice(8)).toEqual([32, 0, 0, 0, 1, 0, 0, 0]);
});

test('the first row of a page begins a new scale, be it of zeros', () => {
  const pages = target();
  pages.scales.pool = [7, 7];
  quantisedPageWriteReference({ ...sizes, target: pages, rows: row(0), queryStart: [0, 1], contextLength: [1] });
  expect(pages.scales.pool).toEqual([7, 0]);
  expect(pages.pool.slice(8, 12)).toEqual([0, 0, 0, 0]);
});

test('rows without a page, or without a page of scales, are dropped', () => {
  for (const part of ['pages', 'scales']) {
    const pages = target();
    (part === 'pages' ? pages : pages.scales).table = [-1, 0];
    quantisedPageWriteReference({ ...sizes, target: pages, rows: row(1, 1), queryStart: [0, 2], contextLength: [2] });
    expect(pages.pool.every((number) => number === 99)).toBe(true);
  }
});
