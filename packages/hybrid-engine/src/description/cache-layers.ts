import { type AttentionLayer, attentionLayerConfig } from '@bufferwise/adapter-attention';
import { type Mamba2Layer, mamba2LayerConfig } from '@bufferwise/adapter-ssm';
import type { LayerConfig } from '@bufferwise/core-policy';
import type { KvStorage, ReplayRing } from '@bufferwise/gpu-kernels';
import type { AttentionDescription } from './attention.ts';
import type { Mamba2Description } from './mamba2.ts';
import type { ModelDescription } from './model-description.ts';

/** How a model keeps what it remembers, where there is a choice. */
export interface MemoryOptions {
  /** How keys and values lie in pages; all else is computed and kept in f32. Default `f32`. */
  storage?: KvStorage;
  /**
   * Mamba-2 layers keep a ring of so many tokens beside their state: short steps write no state then, and their tokens can be taken
   * back. Default: no ring.
   */
  replay?: ReplayRing;
}

/**
 * What a described model remembers, as the cache manager wants it told: what the consumers of its layers keep. `layerId` is the
 * position in `layers`.
 *
 * All buffers but replay rings inherit the default policy; spread a layer and set `reusePolicy` on it or its buffers for another.
 */
export function cacheLayers(model: ModelDescription, options: MemoryOptions & { tokensPerBlock: number }): LayerConfig[] {
  return model.layers.map(({ mixer }, layerId) =>
    mixer.kind === 'attention'
      ? attentionLayerConfig(attentionLayer(mixer, layerId, options), options.tokensPerBlock)
      : mamba2LayerConfig(mamba2Layer(mixer, layerId, options)),
  );
}

/** The attention layers of a model, for `AttentionConsumer`. */
export function attentionLayers(model: ModelDescription, options: MemoryOptions): AttentionLayer[] {
  return model.layers.flatMap(({ mixer }, layerId) =>
    mixer.kind === 'attention' ? [attentionLayer(mixer, layerId, options)] : [],
  );
}

/** The Mamba-2 layers of a model, for `Mamba2Consumer`. */
export function mamba2Layers(model: ModelDescription, options: MemoryOptions): Mamba2Layer[] {
  return model.layers.flatMap(({ mixer }, layerId) => (mixer.kind === 'mamba2' ? [mamba2Layer(mixer, layerId, options)] : []));
}

function attentionLayer(mixer: AttentionDescription, layerId: number, { storage }: MemoryOptions): AttentionLayer {
  const { numHeads: numQueryHeads, numKvHeads, headDim, scale, windowSize, numSinkTokens } = mixer;
  const layer = { layerId, numQueryHeads, numKvHeads, headDim, scale, storage };
  return windowSize === undefined ? layer : { ...layer, slidingWindowSize: windowSize, numSinkTokens };
}

function mamba2Layer(mixer: Mamba2Description, layerId: number, { replay }: MemoryOptions): Mamba2Layer {
  const { numHeads, headDim, stateSize, numGroups, convWidth } = mixer;
  return { layerId, numHeads, headDim, stateSize, numGroups, convWidth, ...(replay && { replay }) };
}
