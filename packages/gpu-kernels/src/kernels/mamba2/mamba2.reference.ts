import { at, put, type ReferencePages, type ReferenceRows, softplus, walkRequests } from '../recurrent/pages.reference.ts';
import type { StateShape } from '../recurrent/state-shape.ts';

/** Operands of `SsmOperands`, in arrays instead of buffers. */
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

/** What scan, step and replay of a Mamba-2 layer must compute, token after token, in float64. */
export function ssmReference({ numHeads, headDim, stateSize, numGroups }: StateShape, operands: SsmReference): void {
  const { tokensPerRequest, xBC, dt, dtBias, aLog, dSkip, state, y } = operands;
  walkRequests(tokensPerRequest, state, numHeads * headDim * stateSize, (row, h) => {
    for (let head = 0; head < numHeads; head++) {
      const group = Math.floor(head / (numHeads / numGroups));
      const columnB = numHeads * headDim + group * stateSize;
      const columnC = columnB + numGroups * stateSize;
      const stepSize = softplus(at(dt, row, head) + dtBias[head]);
      const decay = Math.exp(-Math.exp(aLog[head]) * stepSize);
      for (let p = 0; p < headDim; p++) {
        const x = at(xBC, row, head * headDim + p);
        let sum = dSkip[head] * x;
        for (let n = 0; n < stateSize; n++) {
          const i = (head * headDim + p) * stateSize + n;
          h[i] = decay * h[i] + stepSize * x * at(xBC, row, columnB + n);
          sum += h[i] * at(xBC, row, columnC + n);
        }
        put(y, row, head * headDim + p, sum);
      }
    }
  });
}
