import { expect, test } from 'vitest';
import { pageWriteReference } from './page-write.reference.ts';

/** Two requests; pages of two rows of one word, one word apart from each other. */
const shape = { numTokens: 1, tokensPerPage: 2, tableStride: 2, rowWords: 1, pageStrideWords: 3 };
const pageTable = Int32Array.of(2, 0, 1, -1);

function written(request: number, position: number): number[] {
  const pages = new Float32Array(9);
  pageWriteReference(shape, Float32Array.of(7), Int32Array.of(request, position), pageTable, pages);
  return [...pages.keys()].filter((word) => pages[word] === 7);
}

test('a position goes to its row in the page that the table names', () => {
  expect(written(0, 0)).toEqual([6]);
  expect(written(0, 1)).toEqual([7]);
  expect(written(0, 2)).toEqual([0]);
  expect(written(1, 1)).toEqual([4]);
});

test('a row without a page is dropped', () => {
  expect(written(1, 2)).toEqual([]);
  expect(written(-1, 0)).toEqual([]);
  expect(written(0, -1)).toEqual([]);
});

test('a row beyond the table does not fall into the next request', () => {
  expect(written(0, 3)).toEqual([1]);
  expect(written(0, 4)).toEqual([]);
  expect(written(2, 0)).toEqual([]);
});

test('rows may be part of wider ones, and pages may begin behind others', () => {
  const pages = new Float32Array(12);
  const wide = { ...shape, numTokens: 2, rowStrideWords: 3, rowsBaseWords: 1, pagesBaseWords: 2 };
  pageWriteReference(wide, Float32Array.of(1, 2, 3, 4, 5, 6), Int32Array.of(0, 2, 1, 0), pageTable, pages);
  expect([...pages]).toEqual([0, 0, 2, 0, 0, 5, 0, 0, 0, 0, 0, 0]);
});
