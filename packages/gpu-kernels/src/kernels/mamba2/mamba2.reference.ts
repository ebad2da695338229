import type { CausalConvShape } from './causal-conv.ts';
import type { SsmShape } from './mamba2-shape.ts';

/**
 * What the Mamba-2 kernels must compute, written down as plainly as possible, in float64. Operands are those of
 * `CausalConvOperands` and `SsmOperands`, in arrays instead of buffers; pages are updated in place.
 */

type Numbers = Float32Array | Float64Array;

export interface ReferenceRows {
  data: Numbers;
  offsetWords: number;
  strideWords: number;
}

export interface ReferencePages {
  pool: Numbers;
  baseWords: number;
  strideWords: number;
  /** Page index of each request; negative = begins from zeros, keeps nothing. */
  pageIndex: ArrayLike<number>;
}

export interface CausalConvReference {
  tokensPerRequest: ArrayLike<number>;
  input: ReferenceRows;
  weight: ArrayLike<number>;
  bias: ArrayLike<number>;
  tail: ReferencePages;
  output: ReferenceRows;
}

/** Convolution and SiLU over every request, from its tail page and back to it. */
export function causalConvReference(shape: CausalConvShape, operands: CausalConvReference): void {
  const { numChannels, width } = shape;
  const { tokensPerRequest, input, weight, bias, tail, output } = operands;
  let firstRow = 0;
  for (let r = 0; r < tokensPerRequest.length; r++) {
    const numTokens = tokensPerRequest[r];
    const page = tail.pageIndex[r];
    const pageWord = tail.baseWords + page * tail.strideWords;
    for (let c = 0; c < numChannels; c++) {
      const column: number[] = [];
      for (let i = 0; i < width - 1; i++) column.push(page < 0 ? 0 : tail.pool[pageWord + i * numChannels + c]);
      for (let t = 0; t < numTokens; t++) column.push(at(input, firstRow + t, c));
      for (let t = 0; t < numTokens; t++) {
        let sum = bias[c];
        for (let k = 0; k < width; k++) sum += weight[c * width + k] * column[t + k];
        put(output, firstRow + t, c, silu(sum));
      }
      for (let i = 0; i < width - 1 && page >= 0; i++) tail.pool[pageWord + i * numChannels + c] = column[numTokens + i];
    }
    firstRow += numTokens;
  }
}

export interface SsmReference {
  tokensPerRequest: ArrayLike<number>;
  xBC: ReferenceRows;
  dt: ReferenceRows;
  dtBias: ArrayLike<number>;
  aLog: ArrayLike<number>;
  dSkip: ArrayLike<number>;
  state: ReferencePages;
  y: ReferenceRows;
}

/** The recurrence, token after token, for scans and steps alike. */
export function ssmReference(shape: SsmShape, operands: SsmReference): void {
  const { numHeads, headDim, stateSize, numGroups } = shape;
  const { tokensPerRequest, xBC, dt, dtBias, aLog, dSkip, state, y } = operands;
  let firstRow = 0;
  for (let r = 0; r < tokensPerRequest.length; r++) {
    const page = state.pageIndex[r];
    for (let head = 0; head < numHeads; head++) {
      const group = Math.floor(head / (numHeads / numGroups));
      const columnB = numHeads * headDim + group * stateSize;
      const columnC = columnB + numGroups * stateSize;
      const pageWord = state.baseWords + page * state.strideWords + head * headDim * stateSize;
      const h = new Float64Array(headDim * stateSize);
      if (page >= 0) h.set(state.pool.subarray(pageWord, pageWord + h.length));
      for (let row = firstRow; row < firstRow + tokensPerRequest[r]; row++) {
        const stepSize = softplus(at(dt, row, head) + dtBias[head]);
        const decay = Math.exp(-Math.exp(aLog[head]) * stepSize);
        for (let p = 0; p < headDim; p++) {
          const x = at(xBC, row, head * headDim + p);
          let sum = dSkip[head] * x;
          for (let n = 0; n < stateSize; n++) {
            const i = p * stateSize + n;
            h[i] = decay * h[i] + stepSize * x * at(xBC, row, columnB + n);
            sum += h[i] * at(xBC, row, columnC + n);
          }
          put(y, row, head * headDim + p, sum);
        }
      }
      if (page >= 0) state.pool.set(h, pageWord);
    }
    firstRow += tokensPerRequest[r];
  }
}

function at(rows: ReferenceRows, row: number, column: number): number {
  return rows.data[rows.offsetWords + row * rows.strideWords + column];
}

function put(rows: ReferenceRows, row: number, column: number, value: number): void {
  rows.data[rows.offsetWords + row * rows.strideWords + column] = value;
}

function silu(x: number): number {
  return x / (1 + Math.exp(-x));
}

function softplus(x: number): number {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}
