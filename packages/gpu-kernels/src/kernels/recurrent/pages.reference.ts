import type { Snapshot } from './snapshots.ts';

/** What references of recurrent kernels work on, in arrays instead of buffers; pages are updated in place. */

export type Numbers = Float32Array | Float64Array;

export interface ReferenceRows {
  data: Numbers;
  offsetWords: number;
  strideWords: number;
}

export interface ReferencePages {
  pool: Numbers;
  baseWords: number;
  strideWords: number;
  /** Page index of each request; negative = begins from zeros. */
  pageIndex: ArrayLike<number>;
  /** Page that each request leaves its numbers in, default `pageIndex`; negative = nowhere. */
  targetIndex?: ArrayLike<number>;
  snapshots?: readonly Snapshot[];
}

export function at(rows: ReferenceRows, row: number, column: number): number {
  return rows.data[rows.offsetWords + row * rows.strideWords + column];
}

export function put(rows: ReferenceRows, row: number, column: number, value: number): void {
  rows.data[rows.offsetWords + row * rows.strideWords + column] = value;
}

/**
 * Takes the tokens of packed requests one after the other, and the numbers of each request's page along.
 * @param token called with the token's row and the numbers before it, which it brings behind it
 */
export function walkRequests(
  tokensPerRequest: ArrayLike<number>,
  { pool, baseWords, strideWords, pageIndex, targetIndex = pageIndex, snapshots = [] }: ReferencePages,
  numbersPerPage: number,
  token: (row: number, numbers: Float64Array) => void,
): void {
  const place = (page: number) => baseWords + page * strideWords;
  const save = (page: number, numbers: Float64Array) => page >= 0 && pool.set(numbers, place(page));
  let row = 0;
  for (let r = 0; r < tokensPerRequest.length; r++) {
    if (tokensPerRequest[r] === 0) continue;
    const numbers = new Float64Array(numbersPerPage);
    if (pageIndex[r] >= 0) numbers.set(pool.subarray(place(pageIndex[r]), place(pageIndex[r]) + numbersPerPage));
    for (let t = 1; t <= tokensPerRequest[r]; t++, row++) {
      token(row, numbers);
      for (const { request, numTokens, pageIndex: page } of snapshots) {
        if (request === r && numTokens === t) save(page, numbers);
      }
    }
    save(targetIndex[r], numbers);
  }
}

export function softplus(x: number): number {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

export function sigmoid(x: number): number {
  return 1 / (1 + Math.exp(-x));
}

export function silu(x: number): number {
  return x / (1 + Math.exp(-x));
}
