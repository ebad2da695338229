import { type Describe, readAttentionBiases, readBase, readFeedForwards, readHeads, readRotary } from './common.ts';

/** Llama and what is built like it: full attention, norms before, rotary pairs side by side. */
export const describeLlama: Describe = (source) => {
  const { numLayers, ...base } = readBase(source, 'llama');
  const heads = readHeads(source, base.width);
  const rotary = readRotary(source, heads.headDim, 'interleaved');
  return {
    ...base,
    layers: readFeedForwards(source, numLayers, 'silu').map((feedForward, index) => ({
      mixer: {
        kind: 'attention',
        ...heads,
        scale: 1 / Math.sqrt(heads.headDim),
        rotary,
        queryKeyNorm: 'none',
        ...readAttentionBiases(source, index),
      },
      feedForward,
      normBefore: true,
      normAfter: false,
    })),
  };
};
