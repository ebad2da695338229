import type { AttentionLayer } from './attention-layer.ts';
import { type PlainRows, widthsOf } from './attention-rig.ts';

/**
 * What a layer puts out for the tokens of one sequence, without pages: each head on its own, in doubles.
 *
 * @param rows of all tokens from the first on
 * @returns `[numTokens, numQueryHeads, valueDim]`
 */
export function attentionByHand(layer: AttentionLayer, { queries, keys, values }: PlainRows): Float64Array {
  const { numQueryHeads, numKvHeads, headDim, valueDim = headDim, scale = 1 / Math.sqrt(headDim) } = layer;
  const { softCap, sinkScores, slidingWindowSize = Infinity, numSinkTokens = 0 } = layer;
  const numTokens = queries.length / widthsOf(layer).queries;
  const output = new Float64Array(numTokens * numQueryHeads * valueDim);
  for (let i = 0; i < numTokens; i++) {
    for (let head = 0; head < numQueryHeads; head++) {
      const kvHead = Math.floor((head * numKvHeads) / numQueryHeads);
      let total = sinkScores ? Math.exp(sinkScores[head]) : 0;
      const at = (i * numQueryHeads + head) * valueDim;
      for (let j = 0; j <= i; j++) {
        if (i - j >= slidingWindowSize && j >= numSinkTokens) continue;
        let score = 0;
        for (let d = 0; d < headDim; d++) {
          score += queries[(i * numQueryHeads + head) * headDim + d] * keys[(j * numKvHeads + kvHead) * headDim + d];
        }
        score *= scale;
        const weight = Math.exp(softCap === undefined ? score : softCap * Math.tanh(score / softCap));
        total += weight;
        for (let d = 0; d < valueDim; d++) output[at + d] += weight * values[(j * numKvHeads + kvHead) * valueDim + d];
      }
      for (let d = 0; d < valueDim; d++) output[at + d] /= total;
    }
  }
  return output;
}
