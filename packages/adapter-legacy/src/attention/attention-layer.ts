import type { BufferConfig, LayerConfig, ReusePolicy } from '@bufferwise/core-policy';
import type { KvStorage } from '@bufferwise/gpu-kernels';

/** Roles of an attention layer's buffers. The last two exist where numbers are stored as int8. */
export type LegacyAttentionRole = 'key' | 'value' | 'key_scale' | 'value_scale';

/** One attention layer of a model. All its buffers have its one policy. */
export interface LegacyAttentionLayer {
  readonly layerId: number;
  /** A multiple of `numKvHeads`. */
  readonly numQueryHeads: number;
  readonly numKvHeads: number;
  /** Numbers of one head: a multiple of 4, from 32 to 256. */
  readonly headDim: number;
  /** Factor of the product of query and key. Default `1 / sqrt(headDim)`. */
  readonly scale?: number;
  /** When given, a score s becomes `softCap * tanh(s / softCap)`. Above 0. */
  readonly softCap?: number;
  /** `[numQueryHeads]`: a score of nothing for each query head, that takes its part of the weights. Default: there is none. */
  readonly sinkScores?: ArrayLike<number>;
  /** Tokens, at least 1. Default: no window. */
  readonly slidingWindowSize?: number;
  /** First tokens that stay visible in spite of the window. Default 0. */
  readonly numSinkTokens?: number;
  /** How keys and values are stored. Default `f32`. */
  readonly storage?: KvStorage;
  /** Of the whole layer. Default `required`. */
  readonly reusePolicy?: ReusePolicy;
  /** By role: buffers of different groups never share a slot. */
  readonly coalescingGroups?: Readonly<Partial<Record<LegacyAttentionRole, string>>>;
}

const BYTES_PER_NUMBER: Readonly<Record<KvStorage, number>> = { f32: 4, f16: 2, int8: 1 };

/** What a layer is in the config of a manager: keys and values of a block, with int8 also their scales, one for each head. */
export function attentionLayerConfig(layer: LegacyAttentionLayer, tokensPerBlock: number): LayerConfig {
  const { layerId, numKvHeads, headDim, slidingWindowSize, numSinkTokens, reusePolicy } = layer;
  const { storage = 'f32', coalescingGroups = {} } = layer;
  const buffer = (role: LegacyAttentionRole, size: number): BufferConfig => {
    const coalescingGroup = coalescingGroups[role];
    return { role, size, ...(coalescingGroup === undefined ? {} : { coalescingGroup }) };
  };
  const rowsBytes = tokensPerBlock * numKvHeads * headDim * BYTES_PER_NUMBER[storage];
  const scales = storage === 'int8' ? [buffer('key_scale', 4 * numKvHeads), buffer('value_scale', 4 * numKvHeads)] : [];
  return {
    type: 'attention',
    layerId,
    ...(slidingWindowSize === undefined ? {} : { slidingWindowSize }),
    ...(numSinkTokens === undefined ? {} : { numSinkTokens }),
    ...(reusePolicy === undefined ? {} : { reusePolicy }),
    buffers: [buffer('key', rowsBytes), buffer('value', rowsBytes), ...scales],
  };
}
