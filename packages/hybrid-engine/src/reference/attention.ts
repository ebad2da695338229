import type { AttentionDescription } from '../description/attention.ts';
import type { KeyValueHistory } from '../model/key-value-history.ts';
import { dot } from '../model/vector-math.ts';
import { turn } from './rotary.ts';
import type { ReferenceWeights } from './weights.ts';

/**
 * Attention of one token over itself and what came before it.
 *
 * @param prefix of the layer's tensors: `blk.0`
 * @param x `[width]`, normed if the layer norms before
 * @param history grows by this token
 * @param position tokens before this one
 * @returns `[width]`
 */
export function attend(
  mixer: AttentionDescription,
  prefix: string,
  weights: ReferenceWeights,
  x: Float32Array,
  history: KeyValueHistory,
  position: number,
): Float32Array {
  const { numHeads, numKvHeads, headDim, windowSize = Number.POSITIVE_INFINITY, numSinkTokens = 0, scale } = mixer;
  const query = queryOrKey(mixer, `${prefix}.attn_q`, weights, x, position);
  const key = queryOrKey(mixer, `${prefix}.attn_k`, weights, x, position);
  history.append(key, weights.project(`${prefix}.attn_v`, x, mixer.hasInputBias));

  const seen = Array.from({ length: position + 1 }, (_, j) => j).filter((j) => position - j < windowSize || j < numSinkTokens);
  const out = new Float32Array(numHeads * headDim);
  for (let head = 0; head < numHeads; head++) {
    const kvOffset = Math.floor((head * numKvHeads) / numHeads) * headDim;
    const scores = Float64Array.from(
      seen,
      (j) => scale * dot(query, head * headDim, history.keys, j * history.width + kvOffset, headDim),
    );
    const best = scores.reduce((a, b) => Math.max(a, b));
    const shares = scores.map((score) => Math.exp(score - best));
    const total = shares.reduce((a, b) => a + b);
    for (let d = 0; d < headDim; d++) {
      let weighted = 0;
      for (let i = 0; i < seen.length; i++) weighted += shares[i] * history.values[seen[i] * history.width + kvOffset + d];
      out[head * headDim + d] = weighted / total;
    }
  }
  return weights.project(`${prefix}.attn_output`, out, mixer.hasOutputBias);
}

/** Projected, normed, turned: in this order. */
function queryOrKey(
  { headDim, hasInputBias, queryKeyNorm, rotary }: AttentionDescription,
  name: string,
  weights: ReferenceWeights,
  x: Float32Array,
  position: number,
): Float32Array {
  const projected = weights.project(name, x, hasInputBias);
  const normSize = queryKeyNorm === 'head' ? headDim : projected.length;
  const heads = queryKeyNorm === 'none' ? projected : weights.norm(`${name}_norm`, projected, normSize);
  if (rotary === undefined) return heads;
  turn(heads, headDim, position, rotary, rotary.hasFactors ? weights.get('rope_freqs.weight') : undefined);
  return heads;
}
