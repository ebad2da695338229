import { type Describe, readAttentionBiases, readBase, readFeedForwards, readHeads, readRotary, readWindow } from './common.ts';

/** Of so many layers the last has full attention. */
const WINDOW_PATTERN = 6;

/** Base of the positions in layers with a window. */
const WINDOW_BASE = 10_000;

/** The size that divides its scores by the width of a head as if the model had no width of its own for them. */
const NUM_LAYERS_OF_27B = 62;

/**
 * Gemma 3: norms on both sides of each branch and on each head of queries and keys. The file's rotary base and stretching are
 * those of the layers with full attention. Its norm weights have had their 1 added when the file was made.
 */
export const describeGemma3: Describe = (source) => {
  const { numLayers, ...base } = readBase(source, 'gemma3');
  source.fields.refuse('final_logit_softcapping', 'capped logits are not run');
  const heads = readHeads(source, base.width);
  const far = readRotary(source, heads.headDim, 'halves', 1_000_000);
  const near = { ...far, base: WINDOW_BASE, positionScale: 1 };
  const windowSize = readWindow(source);
  const scaledBy = numLayers === NUM_LAYERS_OF_27B ? base.width / heads.numHeads : heads.headDim;
  return {
    ...base,
    embeddingScale: Math.sqrt(base.width),
    layers: readFeedForwards(source, numLayers, 'gelu').map((feedForward, index) => {
      const windowed = index % WINDOW_PATTERN < WINDOW_PATTERN - 1;
      return {
        mixer: {
          kind: 'attention',
          ...heads,
          windowSize: windowed ? windowSize : undefined,
          scale: 1 / Math.sqrt(scaledBy),
          rotary: windowed ? near : far,
          queryKeyNorm: 'head',
          ...readAttentionBiases(source, index),
        },
        feedForward,
        normBefore: true,
        normAfter: true,
      };
    }),
  };
};
