import { type Describe, readAttentionBiases, readBase, readFeedForwards, readHeads, readRotary, readWindow } from './common.ts';

/** Of so many layers the last has full attention, where the model has a window at all. */
const WINDOW_PATTERN = 4;

/** OLMo 2, and OLMo 3 with windows: norms behind each branch only, queries and keys normed as whole rows. */
export const describeOlmo2: Describe = (source) => {
  const { numLayers, ...base } = readBase(source, 'olmo2');
  const heads = readHeads(source, base.width);
  const rotary = readRotary(source, heads.headDim, 'halves');
  const windowSize = source.fields.has('attention.sliding_window') ? readWindow(source) : undefined;
  return {
    ...base,
    layers: readFeedForwards(source, numLayers, 'silu').map((feedForward, index) => ({
      mixer: {
        kind: 'attention',
        ...heads,
        windowSize: index % WINDOW_PATTERN < WINDOW_PATTERN - 1 ? windowSize : undefined,
        scale: 1 / Math.sqrt(heads.headDim),
        rotary,
        queryKeyNorm: 'row',
        ...readAttentionBiases(source, index),
      },
      feedForward,
      normBefore: false,
      normAfter: true,
    })),
  };
};
