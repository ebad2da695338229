import {
  at,
  put,
  type ReferencePages,
  type ReferenceRows,
  sigmoid,
  softplus,
  walkRequests,
} from '../recurrent/pages.reference.ts';
import type { GatedDeltaShape } from './gated-delta.ts';

/** Operands of `GatedDeltaOperands`, in arrays instead of buffers. */
export interface GatedDeltaReference {
  tokensPerRequest: ArrayLike<number>;
  qkv: ReferenceRows;
  decay: ReferenceRows;
  write: ReferenceRows;
  dtBias: ArrayLike<number>;
  aLog: ArrayLike<number>;
  state: ReferencePages;
  y: ReferenceRows;
}

/** What scan, step and replay of a gated delta net must compute, token after token, in float64. */
export function gatedDeltaReference(shape: GatedDeltaShape, operands: GatedDeltaReference): void {
  const { numHeads, headDim, stateSize, numGroups, normalize = true, queryScale = 1 / Math.sqrt(stateSize) } = shape;
  const { tokensPerRequest, qkv, decay, write, dtBias, aLog, state, y } = operands;
  const vector = (row: number, column: number): number[] => {
    const values = Array.from({ length: stateSize }, (_, n) => at(qkv, row, column + n));
    if (!normalize) return values;
    const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 1e-6));
    return values.map((value) => value / length);
  };
  walkRequests(tokensPerRequest, state, numHeads * headDim * stateSize, (row, S) => {
    for (let head = 0; head < numHeads; head++) {
      const group = Math.floor(head / (numHeads / numGroups));
      const query = vector(row, group * stateSize);
      const key = vector(row, (numGroups + group) * stateSize);
      const keep = Math.exp(-Math.exp(aLog[head]) * softplus(at(decay, row, head) + dtBias[head]));
      for (let p = 0; p < headDim; p++) {
        const rowOfState = S.subarray((head * headDim + p) * stateSize, (head * headDim + p + 1) * stateSize);
        let remembered = 0;
        for (let n = 0; n < stateSize; n++) {
          rowOfState[n] *= keep;
          remembered += rowOfState[n] * key[n];
        }
        const value = at(qkv, row, 2 * numGroups * stateSize + head * headDim + p);
        const u = sigmoid(at(write, row, head)) * (value - remembered);
        let sum = 0;
        for (let n = 0; n < stateSize; n++) {
          rowOfState[n] += u * key[n];
          sum += rowOfState[n] * query[n];
        }
        put(y, row, head * headDim + p, sum * queryScale);
      }
    }
  });
}
