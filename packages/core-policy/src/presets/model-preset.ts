import type { LayerConfig } from '../config/layer-config.ts';
import type { ReusePolicy } from '../reuse/reuse-policy.ts';
import type { PresetFamily } from './family.ts';
import type { AttentionPart, RecurrentPart } from './model-shape.ts';
import type { PresetVariant } from './preset-options.ts';

/** Which part of which model layer a layer of the preset holds. */
export interface LayerOrigin {
  readonly layerId: number;
  /** Index of the layer in the model, as its weights are numbered. */
  readonly modelLayer: number;
  readonly part: AttentionPart['part'] | RecurrentPart['part'];
}

/** Bytes by reuse policy. */
export type BytesByPolicy = Readonly<Record<ReusePolicy, number>>;

/** One kind of buffer that a split variant does not require, and what that is worth. */
export interface PresetSaving {
  readonly buffers: 'windowed-attention' | 'replay-ring';
  readonly policy: Exclude<ReusePolicy, 'required'>;
  readonly layerIds: readonly number[];
  readonly roles: readonly string[];
  /** Bytes of one token, over all these layers, that no match waits for; 0 for recurrent layers. */
  readonly bytesPerToken: number;
  /** Bytes, over all these layers, that a snapshot does not carry; 0 for attention. */
  readonly bytesPerSnapshot: number;
  /** Tokens whose pages a request without the buffers writes again before its first commit, at most. */
  readonly rewrittenTokens: number;
  /** Tokens it runs through the model for those pages to be exact, at most. */
  readonly recomputedTokens: number;
  /** The same in words. */
  readonly sentence: string;
}

/** The layers of a model, ready for `defineCacheConfig`, and what there is to know about them. Deeply frozen. */
export interface ModelPreset {
  readonly family: PresetFamily;
  readonly variant: PresetVariant;
  /** The block size that the pages were sized for: put the same into the cache config. */
  readonly tokensPerBlock: number;
  readonly layers: readonly LayerConfig[];
  /** One a layer, in the same order. */
  readonly origins: readonly LayerOrigin[];
  /** Bytes that one token adds in all attention buffers. A windowed layer gives them back when the token has left the window. */
  readonly bytesPerToken: BytesByPolicy;
  /** Bytes of all recurrent buffers of one sequence. A snapshot carries the required ones. */
  readonly bytesPerSequence: BytesByPolicy;
  /** What the variant does not require. Empty in `whole`, and where nothing is cheap to have again. */
  readonly savings: readonly PresetSaving[];
  /** What is not obvious from the layers, in sentences. */
  readonly notes: readonly string[];
}
