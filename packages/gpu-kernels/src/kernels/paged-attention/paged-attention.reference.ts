import { numberAt, type ReferencePages, scaleAt } from '../kv-pages/kv-pages.reference.ts';
import type { AttentionShape } from './attention-shape.ts';

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
  const row = numberAt(pages, numKvHeads * dim, request, token);
  if (row === undefined) return undefined;
  const at = row + head * dim;
  const { scales } = pages;
  if (!scales) return { at, scale: 1 };
  const place = scaleAt({ ...pages, scales }, numKvHeads, request, token, head);
  return place === undefined ? undefined : { at, scale: scales.pool[place] };
}

function selectionOf(selected: ReferenceSelection | undefined, request: number, head: number): (token: number) => boolean {
  if (!selected) return () => true;
  const { pool, table, pageStrideWords, baseWords = 0, maxBlocks, tokensPerBlock, perHead = false } = selected;
  if (table[request] < 0) return () => false;
  const list = baseWords + table[request] * pageStrideWords + (perHead ? head * maxBlocks : 0);
  const blocks = new Set(Array.from({ length: maxBlocks }, (_, i) => pool[list + i]));
  return (token) => blocks.has(Math.floor(token / tokensPerBlock));
}
