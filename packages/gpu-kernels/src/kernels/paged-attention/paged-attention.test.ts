import { describe, expect, test } from 'vitest';
import type { ReferencePages } from '../kv-pages/kv-pages.reference.ts';
import type { AttentionShape } from './attention-shape.ts';
import { pagedAttentionReference, type ReferenceOperands } from './paged-attention.reference.ts';

/** One head of 4 numbers; queries and keys are a number in the first place, so that a score is their product. */
const SHAPE: AttentionShape = { numQueryHeads: 1, numKvHeads: 1, headDim: 4, scale: 1 };

const rows = (numbers: readonly number[]) => numbers.flatMap((number) => [number, 0, 0, 0]);

function pagesOf(numbers: readonly number[], tokensPerPage = 2): ReferencePages {
  const tableStride = Math.ceil(numbers.length / tokensPerPage);
  return {
    pool: rows(numbers),
    table: Array.from({ length: tableStride }, (_, page) => page),
    tableStride,
    tokensPerPage,
    pageStrideWords: tokensPerPage * 4,
  };
}

const LN2 = Math.log(2);

/** Scores of keys are powers of two when exponentiated: keys in units of log 2, one query of 1. */
function operandsOf(
  exponents: readonly number[],
  values: readonly number[],
  queries: readonly number[] = [1],
): ReferenceOperands & { values: ReferencePages } {
  return {
    keys: pagesOf(exponents.map((exponent) => exponent * LN2)),
    values: pagesOf(values),
    queries: rows(queries),
    queryStart: [0, queries.length],
    contextLength: [values.length],
  };
}

const firstNumbers = (output: Float64Array) => Array.from({ length: output.length / 4 }, (_, row) => output[row * 4]);

const attend = (operands: ReferenceOperands, shape = SHAPE) => firstNumbers(pagedAttentionReference(shape, operands));

function expectNumbers(found: number[], expected: number[]): void {
  expect(found).toHaveLength(expected.length);
  for (let i = 0; i < expected.length; i++) expect(found[i]).toBeCloseTo(expected[i], 12);
}

describe('the reference of paged attention', () => {
  test('is the mean of the values, weighted with the exponentials of the scores', () => {
    expectNumbers(attend(operandsOf([0, 1, 2], [10, 20, 40])), [(10 + 2 * 20 + 4 * 40) / 7]);
  });

  test('shows a query nothing after its own position', () => {
    expectNumbers(attend(operandsOf([0, 0, 0], [3, 6, 9], [1, 1, 1])), [3, 4.5, 6]);
    expectNumbers(attend(operandsOf([0, 0, 0], [3, 6, 9], [1, 1])), [4.5, 6]);
  });

  test('shows the last tokens of a window, and the sinks in spite of it', () => {
    const operands = operandsOf([0, 0, 0, 0, 0], [1, 10, 100, 1000, 10000]);
    expectNumbers(attend({ ...operands, slidingWindowSize: 1 }), [10000]);
    expectNumbers(attend({ ...operands, slidingWindowSize: 2 }), [5500]);
    expectNumbers(attend({ ...operands, slidingWindowSize: 2, numSinkTokens: 1 }), [11001 / 3]);
    expectNumbers(attend({ ...operands, slidingWindowSize: 4, numSinkTokens: 2 }), [11111 / 5]);
    expectNumbers(attend({ ...operands, slidingWindowSize: 9, numSinkTokens: 2 }), [11111 / 5]);
  });

  test('scales the products by 1 / sqrt(headDim) unless told otherwise, and caps them softly when told', () => {
    const operands = operandsOf([0, 2], [0, 1]);
    expectNumbers(attend(operands, { ...SHAPE, scale: undefined }), [2 / 3]);
    expectNumbers(attend(operands, { ...SHAPE, scale: 2 }), [16 / 17]);
    const capped = Math.exp(0.5 * Math.tanh((2 * LN2) / 0.5));
    expectNumbers(attend(operands, { ...SHAPE, softCap: 0.5 }), [capped / (1 + capped)]);
  });

  test('follows the page tables of keys and of values, each with its own pages', () => {
    const operands = operandsOf([0, 1, 2, 3], [1, 2, 3, 4]);
    const keys = {
      ...operands.keys,
      pool: [7, ...rows([2, 3, 0, 1].map((exponent) => exponent * LN2))],
      table: [1, 0],
      baseWords: 1,
    };
    const values = { pool: rows([3, 2, 4, 1]), table: [3, 1, 0, 2], tableStride: 4, tokensPerPage: 1, pageStrideWords: 4 };
    expectNumbers(attend({ ...operands, keys, values }), attend(operands));
    expectNumbers(attend(operands), [(1 + 4 + 12 + 32) / 15]);
  });

  test('does not see tokens without a page, of keys or of values or beyond the table', () => {
    const operands = operandsOf([0, 0, 0, 0], [1, 1, 5, 5]);
    const without = { ...operands.keys, table: [-1, 1] };
    expectNumbers(attend({ ...operands, keys: without }), [5]);
    expectNumbers(attend({ ...operands, values: { ...operands.values, table: [0, -1] } }), [1]);
    expectNumbers(attend({ ...operands, values: { ...operands.values, tableStride: 1 } }), [1]);
    expectNumbers(attend({ ...operands, keys: { ...without, table: [-1, -1] } }), [0]);
  });

  test('multiplies stored numbers with the scale of their page and head', () => {
    const operands = operandsOf([0, 1, 2, 3], [1, 2, 3, 4]);
    const scaled = (pages: ReferencePages, scales: number[]): ReferencePages => ({
      ...pages,
      scales: { pool: [9, ...scales], table: [0], tableStride: 1, tokensPerPage: 4, pageStrideWords: 2, baseWords: 1 },
    });
    const keys = scaled(operands.keys, [0, 0.5]);
    expectNumbers(attend({ ...operands, keys }), [(1 + 2 + 3 * 2 + 4 * 2 ** 1.5) / (2 + 2 + 2 ** 1.5)]);
    expectNumbers(attend({ ...operands, values: scaled(operands.values, [10, 100]) }), [(10 + 40 + 1200 + 3200) / 15]);
  });

  test('reads only blocks that a list names, in any order, beside the window', () => {
    const operands = operandsOf([0, 0, 0, 0, 0], [1, 10, 100, 1000, 10000]);
    const list = { pool: [7, 2, -1, 0, 5], table: [1], pageStrideWords: 1, maxBlocks: 4, tokensPerBlock: 2 };
    expectNumbers(attend({ ...operands, selectedBlocks: list }), [10011 / 3]);
    expectNumbers(attend({ ...operands, selectedBlocks: list, slidingWindowSize: 4 }), [(10000 + 10) / 2]);
    expectNumbers(attend({ ...operands, selectedBlocks: { ...list, table: [-1] } }), [0]);
  });

  test('gives a learned sink its part of the weights', () => {
    const operands = operandsOf([0, 1], [3, 6]);
    expectNumbers(attend({ ...operands, sinkScores: [2 * LN2] }), [15 / 7]);
    expectNumbers(attend({ ...operands, sinkScores: [900] }), [0]);
  });

  test('finds values in the first numbers of the keys, and has heads of values narrower than those of keys', () => {
    const shape = { ...SHAPE, valueDim: 2 };
    const pool = [LN2, 5, 0, 0, 2 * LN2, 8, 0, 0];
    const keys = { pool, table: [0], tableStride: 1, tokensPerPage: 2, pageStrideWords: 8 };
    const output = pagedAttentionReference(shape, { keys, queries: rows([1]), queryStart: [0, 1], contextLength: [2] });
    expectNumbers([...output], [(LN2 * 2 + 2 * LN2 * 4) / 6, (5 * 2 + 8 * 4) / 6]);
  });

  test('keeps requests apart, and gives query heads the key-value head of their group', () => {
    const shape = { ...SHAPE, numQueryHeads: 4, numKvHeads: 2 };
    const pages = { pool: rows([1, 2, 3, 4, 5, 6]), table: [2, 0], tableStride: 1, tokensPerPage: 1, pageStrideWords: 8 };
    const keys = { ...pages, pool: rows([0, 0, 0, 0, 0, 0]) };
    const operands = { keys, values: pages, queries: rows(new Array(8).fill(1)), queryStart: [0, 1, 2], contextLength: [1, 1] };
    expectNumbers(attend(operands, shape), [5, 5, 6, 6, 1, 1, 2, 2]);
  });
});
