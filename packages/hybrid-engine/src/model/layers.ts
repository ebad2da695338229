import type { LayerConfig } from '@bufferwise/core-policy';
import { type HybridModelConfig, layerKind, ssmConvChannels } from './model-config.ts';

/** Bytes of one cached value: keys, values and states are kept in f32. */
const VALUE_BYTES = 4;

/**
 * What the model remembers, as the cache manager wants it told. `layerId` is the position in `layerPattern`.
 *
 * - attention: `key` and `value`, each `[tokensPerBlock, numKvHeads, headDim] f32` a page;
 * - Mamba-2: `ssm_state`, `[ssmNumHeads, ssmHeadDim, ssmState] f32`, and `conv_state`, the last rows before the
 *   convolution, `[ssmConvWidth - 1, ssmInner + 2 * ssmState] f32`, one page a sequence each.
 *
 * All buffers inherit the default policy; spread a layer and set `reusePolicy` on it or its buffers for another.
 */
export function cacheLayers(config: HybridModelConfig, options: { tokensPerBlock: number }): LayerConfig[] {
  return Array.from(config.layerPattern, (_, layerId) => {
    const kind = layerKind(config, layerId);
    if (kind === 'M') return ssmLayer(config, layerId);
    const size = config.numKvHeads * config.headDim * VALUE_BYTES * options.tokensPerBlock;
    const buffers = [
      { role: 'key', size },
      { role: 'value', size },
    ];
    if (kind === 'F') return { type: 'attention', layerId, buffers };
    return { type: 'attention', layerId, buffers, slidingWindowSize: config.slidingWindow, numSinkTokens: config.numSinkTokens };
  });
}

function ssmLayer(config: HybridModelConfig, layerId: number): LayerConfig {
  return {
    type: 'ssm',
    layerId,
    buffers: [
      { role: 'ssm_state', size: config.ssmInner * config.ssmState * VALUE_BYTES },
      { role: 'conv_state', size: (config.ssmConvWidth - 1) * ssmConvChannels(config) * VALUE_BYTES },
    ],
  };
}
