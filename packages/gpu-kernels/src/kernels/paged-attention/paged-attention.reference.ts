import type { AttentionShape } from './attention-shape.ts';

/** `PagePlaces` with plain arrays: `table` `[numRequests, tableStride]`. */
export interface ReferencePlaces {
  table: ArrayLike<number>;
  tableStride: number;
  tokensPerPage: number;
  pageStrideWords: number;
  baseWords?: number;
}

/** `KvPages` with plain arrays. */
export interface ReferencePages extends ReferencePlaces {
  /** Numbers as they are stored, in units of the scale of their page where there are scales. */
  pool: ArrayLike<number>;
  /** 1 for f32, 2 for f16, 4 for int8. Default 1. */
  numbersPerWord?: number;
  rowStrideWords?: number;
  scales?: ReferenceScales;
}

/** `KvScales` with plain arrays. */
export interface ReferenceScales extends ReferencePlaces {
  pool: ArrayLike<number>;
  headsPerScale?: number;
}

/** `SelectedBlocks` with plain arrays. */
export interface ReferenceSelection {
  pool: ArrayLike<number>;
  table: ArrayLike<number>;
  pageStrideWords: number;
  baseWords?: number;
  maxBlocks: number;
  tokensPerBlock: number;
  perHead?: boolean;
}

/** Operands of prefill with plain arrays. Decode is the same with one query a request. */
export interface ReferenceOperands {
  keys: ReferencePages;
  /** Absent where values lie in keys. */
  values?: ReferencePages;
  /** `[numTokens, numQueryHeads, headDim]` */
  queries: ArrayLike<number>;
  /** `[numRequests + 1]` */
  queryStart: ArrayLike<number>;
  /** `[numRequests]` */
  contextLength: ArrayLike<number>;
  slidingWindowSize?: number;
  numSinkTokens?: number;
  /** `[numQueryHeads]` */
  sinkScores?: ArrayLike<number>;
  selectedBlocks?: ReferenceSelection;
}

/**
 * What paged attention computes, in plain TypeScript and doubles: for each query and head, the mean of the visible values,
 * weighted with the exponentials of their scores.
 *
 * @returns `[numTokens, numQueryHeads, valueDim]`; zeros for a query that sees nothing
 */
export function pagedAttentionReference(shape: AttentionShape, operands: ReferenceOperands): Float64Array {
  const { numQueryHeads, numKvHeads, headDim, valueDim = headDim, scale = 1 / Math.sqrt(headDim), softCap } = shape;
  const { keys, values, queries, queryStart, contextLength, sinkScores, selectedBlocks } = operands;
  const { slidingWindowSize = Infinity, numSinkTokens = 0 } = operands;
  const numRequests = contextLength.length;
  const output = new Float64Array(queryStart[numRequests] * numQueryHeads * valueDim);

  for (let r = 0; r < numRequests; r++) {
    for (let h = 0; h < numQueryHeads; h++) {
      const head = Math.floor(h / (numQueryHeads / numKvHeads));
      const isSelected = selectionOf(selectedBlocks, r, head);
      for (let t = queryStart[r]; t < queryStart[r + 1]; t++) {
        const i = contextLength[r] - queryStart[r + 1] + t;
        const queryAt = (t * numQueryHeads + h) * headDim;
        const seen: { score: number; value: Head }[] = [];
        for (let j = 0; j <= i; j++) {
          if ((i - j >= slidingWindowSize && j >= numSinkTokens) || !isSelected(j)) continue;
          const key = headOf(keys, numKvHeads, headDim, r, j, head);
          const value = values ? headOf(values, numKvHeads, valueDim, r, j, head) : key;
          if (!key || !value) continue;
          let product = 0;
          for (let d = 0; d < headDim; d++) product += queries[queryAt + d] * keys.pool[key.at + d] * key.scale;
          const score = softCap === undefined ? product * scale : softCap * Math.tanh((product * scale) / softCap);
          seen.push({ score, value });
        }
        const scores = seen.map(({ score }) => score);
        if (sinkScores) scores.push(sinkScores[h]);
        const highest = Math.max(...scores);
        const total = scores.reduce((sum, score) => sum + Math.exp(score - highest), 0);
        const { pool } = values ?? keys;
        const outputAt = (t * numQueryHeads + h) * valueDim;
        for (const { score, value } of seen) {
          const weight = (Math.exp(score - highest) / total) * value.scale;
          for (let d = 0; d < valueDim; d++) output[outputAt + d] += weight * pool[value.at + d];
        }
      }
    }
  }
  return output;
}

/** Where a head of a token begins among the stored numbers, and what they are to be multiplied with. */
interface Head {
  at: number;
  scale: number;
}

/** Undefined where the request has no page. */
function headOf(
  pages: ReferencePages,
  numKvHeads: number,
  dim: number,
  request: number,
  token: number,
  head: number,
): Head | undefined {
  const { numbersPerWord = 1, rowStrideWords = (numKvHeads * dim) / numbersPerWord, scales } = pages;
  const word = rowOf(pages, request, token, token % pages.tokensPerPage, rowStrideWords);
  if (word === undefined) return undefined;
  const at = word * numbersPerWord + head * dim;
  if (!scales) return { at, scale: 1 };
  const { headsPerScale = 1 } = scales;
  const row = Math.floor((token % scales.tokensPerPage) / pages.tokensPerPage);
  const scaleAt = rowOf(scales, request, token, row, numKvHeads / headsPerScale);
  return scaleAt === undefined ? undefined : { at, scale: scales.pool[scaleAt + Math.floor(head / headsPerScale)] };
}

function rowOf(places: ReferencePlaces, request: number, token: number, row: number, strideWords: number): number | undefined {
  const { table, tableStride, tokensPerPage, pageStrideWords, baseWords = 0 } = places;
  const column = Math.floor(token / tokensPerPage);
  const page = column < tableStride ? table[request * tableStride + column] : -1;
  return page < 0 ? undefined : baseWords + page * pageStrideWords + row * strideWords;
}

function selectionOf(selected: ReferenceSelection | undefined, request: number, head: number): (token: number) => boolean {
  if (!selected) return () => true;
  const { pool, table, pageStrideWords, baseWords = 0, maxBlocks, tokensPerBlock, perHead = false } = selected;
  if (table[request] < 0) return () => false;
  const list = baseWords + table[request] * pageStrideWords + (perHead ? head * maxBlocks : 0);
  const blocks = new Set(Array.from({ length: maxBlocks }, (_, i) => pool[list + i]));
  return (token) => blocks.has(Math.floor(token / tokensPerBlock));
}
