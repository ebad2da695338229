import { AdapterError } from '@bufferwise/adapter-kit';
import type { AttentionLayerConfig, BufferConfig, ReusePolicy } from '@bufferwise/core-policy';
import type { AttentionShape, KvStorage } from '@bufferwise/gpu-kernels';

/** What a layer keeps. The scales are there where numbers are stored in int8. */
export type AttentionRole = 'key' | 'value' | 'key_scale' | 'value_scale';

/** One attention layer of a model. */
export interface AttentionLayer {
  readonly layerId: number;
  /** A multiple of `numKvHeads`. */
  readonly numQueryHeads: number;
  readonly numKvHeads: number;
  /** Numbers of one head: a multiple of 4, from 8 to 256. */
  readonly headDim: number;
  /** Numbers of one head of a value and of the output. Default `headDim`. */
  readonly valueDim?: number;
  /** Factor of scores. Default `1 / sqrt(headDim)`. */
  readonly scale?: number;
  /** When given, a score s becomes `softCap * tanh(s / softCap)`. Above 0. */
  readonly softCap?: number;
  /** `[numQueryHeads]`: a score of nothing for each query head, that takes its part of the weights. Default: there is none. */
  readonly sinkScores?: ArrayLike<number>;
  /** Tokens that a query sees, itself included. Default: all. */
  readonly slidingWindowSize?: number;
  /** First tokens that stay visible in spite of the window, exactly so many. Default 0. */
  readonly numSinkTokens?: number;
  /** How numbers lie in pages; rows come in as f32. Default `f32`. `int8` has a scale for each page and head, in buffers of their own. */
  readonly storage?: KvStorage;
  /** By role. Scales go with their numbers: they have the same policy, which need not be said twice. */
  readonly policies?: Readonly<Partial<Record<AttentionRole, ReusePolicy>>>;
  /** Of the roles that `policies` does not name. Default `required`. */
  readonly reusePolicy?: ReusePolicy;
  /** By role: buffers of different groups never share a slot. */
  readonly coalescingGroups?: Readonly<Partial<Record<AttentionRole, string>>>;
  /** By role: tokens of one page where that is less than a block, a divisor of it. Pages of scales are for whole pages of numbers. */
  readonly tokensPerBlockOverrides?: Readonly<Partial<Record<AttentionRole, number>>>;
}

/** The scales of each kind of numbers. */
export const SCALES_OF = { key: 'key_scale', value: 'value_scale' } as const;

const NUMBER_BYTES: Readonly<Record<KvStorage, number>> = { f32: 4, f16: 2, int8: 1 };

/** What a layer keeps, in the order of its buffers. */
export function rolesOf({ storage }: AttentionLayer): readonly AttentionRole[] {
  return storage === 'int8' ? ['key', 'value', 'key_scale', 'value_scale'] : ['key', 'value'];
}

/** Numbers of one token in a buffer of keys or values: a row `[numKvHeads, headDim]`, or `[numKvHeads, valueDim]`. */
export function rowNumbers({ numKvHeads, headDim, valueDim = headDim }: AttentionLayer, role: 'key' | 'value'): number {
  return numKvHeads * (role === 'key' ? headDim : valueDim);
}

/** Tokens that one page of a buffer is for. */
export function tokensPerPage({ tokensPerBlockOverrides }: AttentionLayer, role: AttentionRole, tokensPerBlock: number): number {
  return tokensPerBlockOverrides?.[role] ?? tokensPerBlock;
}

/** What the kernels are made for. Layers of equal shapes share them. */
export function shapeOf(layer: AttentionLayer): AttentionShape {
  const { numQueryHeads, numKvHeads, headDim, valueDim, scale, softCap, sinkScores, storage } = layer;
  return {
    numQueryHeads,
    numKvHeads,
    headDim,
    ...(valueDim === undefined ? {} : { valueDim }),
    ...(scale === undefined ? {} : { scale }),
    ...(softCap === undefined ? {} : { softCap }),
    learnedSinks: sinkScores !== undefined,
    storage: storage ?? 'f32',
  };
}

/**
 * The buffers of a layer, for `defineCacheConfig`: what `AttentionConsumer.layers` has, for whoever needs it before there is a device.
 *
 * | role | one page, bytes |
 * | --- | --- |
 * | `key`, `value` | `[tokens of the page, numKvHeads, headDim or valueDim]` f32, f16 or int8 |
 * | `key_scale`, `value_scale` | `[tokens of the page / tokens of a page of numbers, numKvHeads]` f32 |
 *
 * @param tokensPerBlock as in the config
 * @throws {AdapterError} `layout-refused` when scales have another policy than their numbers, or pages that are for no whole pages of them
 */
export function attentionLayerConfig(layer: AttentionLayer, tokensPerBlock: number): AttentionLayerConfig {
  const { layerId, slidingWindowSize, numSinkTokens, reusePolicy } = layer;
  return {
    type: 'attention',
    layerId,
    buffers: rolesOf(layer).map((role) => bufferConfig(layer, role, tokensPerBlock)),
    ...(slidingWindowSize === undefined ? {} : { slidingWindowSize }),
    ...(numSinkTokens === undefined ? {} : { numSinkTokens }),
    ...(reusePolicy === undefined ? {} : { reusePolicy }),
  };
}

function bufferConfig(layer: AttentionLayer, role: AttentionRole, tokensPerBlock: number): BufferConfig {
  const policy = policyOf(layer, role);
  const override = layer.tokensPerBlockOverrides?.[role];
  const coalescingGroup = layer.coalescingGroups?.[role];
  return {
    role,
    size: pageBytes(layer, role, tokensPerBlock),
    ...(override === undefined ? {} : { tokensPerBlockOverride: override }),
    ...(policy === undefined ? {} : { reusePolicy: policy }),
    ...(coalescingGroup === undefined ? {} : { coalescingGroup }),
  };
}

/** Undefined where it is that of the layer. Numbers are worth nothing without their scales, so one is not reused without the other. */
function policyOf(
  { layerId, policies = {}, reusePolicy = 'required' }: AttentionLayer,
  role: AttentionRole,
): ReusePolicy | undefined {
  if (role === 'key' || role === 'value') return policies[role];
  const numbers = role === 'key_scale' ? 'key' : 'value';
  const ofNumbers = policies[numbers] ?? reusePolicy;
  const own = policies[role] ?? ofNumbers;
  if (own !== ofNumbers) {
    throw new AdapterError(
      'layout-refused',
      `layer ${layerId}: ${numbers} is ${ofNumbers} and ${role} is ${own}, but numbers in int8 mean nothing without their scales; leave the policy of ${role} out`,
    );
  }
  return policies[numbers];
}

function pageBytes(layer: AttentionLayer, role: AttentionRole, tokensPerBlock: number): number {
  const tokens = tokensPerPage(layer, role, tokensPerBlock);
  if (role === 'key' || role === 'value') return tokens * rowNumbers(layer, role) * NUMBER_BYTES[layer.storage ?? 'f32'];
  const numbers = role === 'key_scale' ? 'key' : 'value';
  const tokensOfNumbers = tokensPerPage(layer, numbers, tokensPerBlock);
  if (tokens % tokensOfNumbers !== 0) {
    throw new AdapterError(
      'layout-refused',
      `layer ${layer.layerId}: a page of ${role} is for ${tokens} tokens, which are no whole pages of ${tokensOfNumbers} of ${numbers}; give ${role} the \`tokensPerBlockOverrides\` of ${numbers}, or a multiple`,
    );
  }
  return (tokens / tokensOfNumbers) * layer.numKvHeads * 4;
}
