import type { LayerConfig } from '@bufferwise/core-policy';
import type { AttentionDescription } from './attention.ts';
import { convolvedChannels, type Mamba2Description } from './mamba2.ts';
import type { ModelDescription } from './model-description.ts';

/** Bytes of one cached value: keys, values and states are kept in f32. */
const VALUE_BYTES = 4;

/**
 * What a described model remembers, as the cache manager wants it told. `layerId` is the position in `layers`.
 *
 * - attention: `key` and `value`, each `[tokensPerBlock, numKvHeads, headDim] f32` a page;
 * - Mamba-2: `ssm_state`, `[numHeads, headDim, stateSize] f32`, and `conv_state`, the last rows before the convolution,
 *   `[convWidth - 1, inner + 2 × numGroups × stateSize] f32`, one page a sequence each.
 *
 * All buffers inherit the default policy; spread a layer and set `reusePolicy` on it or its buffers for another.
 */
export function cacheLayers(model: ModelDescription, options: { tokensPerBlock: number }): LayerConfig[] {
  return model.layers.map(({ mixer }, layerId) =>
    mixer.kind === 'attention' ? attentionLayer(mixer, layerId, options.tokensPerBlock) : ssmLayer(mixer, layerId),
  );
}

function attentionLayer(mixer: AttentionDescription, layerId: number, tokensPerBlock: number): LayerConfig {
  const { numKvHeads, headDim, windowSize, numSinkTokens } = mixer;
  const size = numKvHeads * headDim * VALUE_BYTES * tokensPerBlock;
  const buffers = [
    { role: 'key', size },
    { role: 'value', size },
  ];
  if (windowSize === undefined) return { type: 'attention', layerId, buffers };
  return { type: 'attention', layerId, buffers, slidingWindowSize: windowSize, ...(numSinkTokens && { numSinkTokens }) };
}

function ssmLayer(mixer: Mamba2Description, layerId: number): LayerConfig {
  return {
    type: 'ssm',
    layerId,
    buffers: [
      { role: 'ssm_state', size: mixer.inner * mixer.stateSize * VALUE_BYTES },
      { role: 'conv_state', size: (mixer.convWidth - 1) * convolvedChannels(mixer) * VALUE_BYTES },
    ],
  };
}
