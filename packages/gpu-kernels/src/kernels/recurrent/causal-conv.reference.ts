import type { CausalConvShape } from './causal-conv.ts';
import { at, put, type ReferencePages, type ReferenceRows, silu, walkRequests } from './pages.reference.ts';

export interface CausalConvReference {
  tokensPerRequest: ArrayLike<number>;
  input: ReferenceRows;
  weight: ArrayLike<number>;
  bias: ArrayLike<number>;
  /** Pages `[width - 1, numChannels]`, oldest row first. */
  tail: ReferencePages;
  output: ReferenceRows;
}

/** What the causal-conv kernel must compute, in float64: convolution and SiLU over every request, from its tail page and back to it. */
export function causalConvReference({ numChannels, width }: CausalConvShape, operands: CausalConvReference): void {
  const { tokensPerRequest, input, weight, bias, tail, output } = operands;
  walkRequests(tokensPerRequest, tail, (width - 1) * numChannels, (row, rows) => {
    for (let c = 0; c < numChannels; c++) {
      let sum = bias[c] + weight[c * width + width - 1] * at(input, row, c);
      for (let k = 0; k < width - 1; k++) sum += weight[c * width + k] * rows[k * numChannels + c];
      put(output, row, c, silu(sum));
    }
    rows.copyWithin(0, numChannels);
    for (let c = 0; c < numChannels; c++) rows[(width - 2) * numChannels + c] = at(input, row, c);
  });
}
