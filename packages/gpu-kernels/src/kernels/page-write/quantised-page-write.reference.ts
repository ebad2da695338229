import { numberAt, type ReferencePages, type ReferenceScales, scaleAt } from '../kv-pages/kv-pages.reference.ts';

/** Operands of the int8 page write with plain arrays. The pools are changed in place. */
export interface QuantisedWriteReference {
  /** One number for each stored one; its pool and that of its scales are written. */
  target: ReferencePages & { pool: number[] | Float32Array; scales: ReferenceScales & { pool: number[] | Float32Array } };
  numKvHeads: number;
  headDim: number;
  rows: ArrayLike<number>;
  rowStrideWords?: number;
  rowsBaseWords?: number;
  queryStart: ArrayLike<number>;
  contextLength: ArrayLike<number>;
}

/** What the int8 page-write kernel computes, in plain TypeScript. */
export function quantisedPageWriteReference(options: QuantisedWriteReference): void {
  const { target, numKvHeads, headDim, rows, queryStart, contextLength } = options;
  const { rowStrideWords = numKvHeads * headDim, rowsBaseWords = 0 } = options;
  const { tokensPerPage, scales } = target;
  const { headsPerScale = 1 } = scales;
  const groupNumbers = headsPerScale * headDim;
  for (let r = 0; r < contextLength.length; r++) {
    const numTokens = queryStart[r + 1] - queryStart[r];
    const first = contextLength[r] - numTokens;
    for (let begin = first; begin < contextLength[r]; begin += tokensPerPage - (begin % tokensPerPage)) {
      const end = Math.min(contextLength[r], begin - (begin % tokensPerPage) + tokensPerPage);
      for (let group = 0; group < numKvHeads / headsPerScale; group++) {
        const pageRow = numberAt(target, numKvHeads * headDim, r, begin);
        const scalePlace = scaleAt(target, numKvHeads, r, begin, group * headsPerScale);
        if (pageRow === undefined || scalePlace === undefined) continue;
        const rowAt = (token: number) => rowsBaseWords + (queryStart[r] + token - first) * rowStrideWords + group * groupNumbers;
        let most = 0;
        for (let token = begin; token < end; token++) {
          for (let d = 0; d < groupNumbers; d++) most = Math.max(most, Math.abs(rows[rowAt(token) + d]));
        }
        const numOld = begin % tokensPerPage;
        const oldScale = numOld > 0 ? scales.pool[scalePlace] : 0;
        const scale = Math.max(oldScale, most / 127);
        for (let token = begin - numOld; token < end; token++) {
          for (let d = 0; d < groupNumbers; d++) {
            const place = (numberAt(target, numKvHeads * headDim, r, token) as number) + group * groupNumbers + d;
            if (token >= begin) target.pool[place] = scale > 0 ? roundToEven(rows[rowAt(token) + d] / scale) : 0;
            else if (scale > oldScale) target.pool[place] = roundToEven((target.pool[place] * oldScale) / scale);
          }
        }
        scales.pool[scalePlace] = scale;
      }
    }
  }
}

function roundToEven(number: number): number {
  const below = Math.floor(number);
  const rest = number - below;
  if (rest !== 0.5) return Math.round(number);
  return below % 2 === 0 ? below : below + 1;
}
