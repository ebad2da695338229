import type { AttentionShape } from './attention-shape.ts';

/** `KvPages` with plain arrays: `pool` in words, `table` `[numRequests, tableStride]`. */
export interface ReferencePages {
  pool: ArrayLike<number>;
  table: ArrayLike<number>;
  tableStride: number;
  tokensPerPage: number;
  pageStrideWords: number;
  baseWords?: number;
}

/** Operands of prefill with plain arrays. Decode is the same with one query a request. */
export interface ReferenceOperands {
  keys: ReferencePages;
  values: ReferencePages;
  /** `[numTokens, numQueryHeads, headDim]` */
  queries: ArrayLike<number>;
  /** `[numRequests + 1]` */
  queryStart: ArrayLike<number>;
  /** `[numRequests]` */
  contextLength: ArrayLike<number>;
  slidingWindowSize?: number;
  numSinkTokens?: number;
}

/**
 * What paged attention computes, in plain TypeScript and doubles: for each query and head, the mean of the visible values,
 * weighted with the exponentials of their scores.
 *
 * @returns `[numTokens, numQueryHeads, headDim]`; zeros for a query that sees nothing
 */
export function pagedAttentionReference(shape: AttentionShape, operands: ReferenceOperands): Float64Array {
  const { numQueryHeads, numKvHeads, headDim, scale = 1 / Math.sqrt(headDim), softCap } = shape;
  const { keys, values, queries, queryStart, contextLength, slidingWindowSize = Infinity, numSinkTokens = 0 } = operands;
  const numRequests = contextLength.length;
  const output = new Float64Array(queryStart[numRequests] * numQueryHeads * headDim);

  for (let r = 0; r < numRequests; r++) {
    for (let t = queryStart[r]; t < queryStart[r + 1]; t++) {
      const i = contextLength[r] - queryStart[r + 1] + t;
      for (let h = 0; h < numQueryHeads; h++) {
        const head = Math.floor(h / (numQueryHeads / numKvHeads));
        const queryAt = (t * numQueryHeads + h) * headDim;
        const seen: { score: number; valueAt: number }[] = [];
        for (let j = 0; j <= i; j++) {
          if (i - j >= slidingWindowSize && j >= numSinkTokens) continue;
          const keyAt = wordOf(keys, numKvHeads * headDim, r, j);
          const valueAt = wordOf(values, numKvHeads * headDim, r, j);
          if (keyAt < 0 || valueAt < 0) continue;
          let product = 0;
          for (let d = 0; d < headDim; d++) product += queries[queryAt + d] * keys.pool[keyAt + head * headDim + d];
          const score = softCap === undefined ? product * scale : softCap * Math.tanh((product * scale) / softCap);
          seen.push({ score, valueAt: valueAt + head * headDim });
        }
        const highest = Math.max(...seen.map(({ score }) => score));
        const total = seen.reduce((sum, { score }) => sum + Math.exp(score - highest), 0);
        for (const { score, valueAt } of seen) {
          const weight = Math.exp(score - highest) / total;
          for (let d = 0; d < headDim; d++) output[queryAt + d] += weight * values.pool[valueAt + d];
        }
      }
    }
  }
  return output;
}

/** First word of a token's row, or -1 where the request has no page. */
function wordOf(pages: ReferencePages, rowWords: number, request: number, token: number): number {
  const { table, tableStride, tokensPerPage, pageStrideWords, baseWords = 0 } = pages;
  const column = Math.floor(token / tokensPerPage);
  const page = column < tableStride ? table[request * tableStride + column] : -1;
  return page < 0 ? -1 : baseWords + page * pageStrideWords + (token % tokensPerPage) * rowWords;
}
