import { KernelError } from '../../errors/kernel-error.ts';
import { type KvStorage, NUMBERS_PER_WORD } from '../kv-pages/kv-pages.ts';

/** Sizes of an attention layer, how its numbers are stored, and how its scores are made. */
export interface AttentionShape {
  /** A multiple of `numKvHeads`: query head h reads key-value head `floor(h / (numQueryHeads / numKvHeads))`. */
  numQueryHeads: number;
  numKvHeads: number;
  /** Numbers in one head of a query or key: a multiple of 4, from 8 to 256; up to 640 where values lie in keys. */
  headDim: number;
  /** Numbers in one head of a value, and of the output: a multiple of 4, from 8 to 256. Default `headDim`. */
  valueDim?: number;
  /**
   * Values are the first `valueDim` numbers (up to 512) of the keys, and have no pages of their own. So is the latent cache of
   * multi-head latent attention, with the projection of keys absorbed into the queries: one key-value head, whose row is the
   * latent and then the rotated part. `latentAttention` makes such a shape. Default false.
   */
  valuesInKeys?: boolean;
  /** Factor of the product of query and key. Default `1 / sqrt(headDim)`. */
  scale?: number;
  /** When given, a score s becomes `softCap * tanh(s / softCap)`. Above 0. */
  softCap?: number;
  /** Each query head has a score of nothing, given with each call (`sinkScores`), that takes its part of the weights. Default false. */
  learnedSinks?: boolean;
  /** Only blocks are read that a list names, given with each call (`selectedBlocks`). Default false. */
  selectsBlocks?: boolean;
  /** Default `f32`. */
  storage?: KvStorage;
}

/** An `AttentionShape` with its defaults filled in. */
export type FullAttentionShape = Required<Omit<AttentionShape, 'softCap'>> & Pick<AttentionShape, 'softCap'>;

export const LABEL = 'paged-attention';

const MIN_HEAD_DIM = 8;
const MAX_HEAD_DIM = 256;
/** Of keys that contain their values. */
const MAX_LATENT_DIM = 640;
const MAX_LATENT_VALUE_DIM = 512;

/** @throws {KernelError} `kernel-dispatch` when the shape is not one that the kernels serve */
export function fullAttentionShape(shape: AttentionShape): FullAttentionShape {
  const { numQueryHeads, numKvHeads, headDim, valueDim = headDim, valuesInKeys = false, softCap } = shape;
  const { scale = 1 / Math.sqrt(headDim), learnedSinks = false, selectsBlocks = false, storage = 'f32' } = shape;
  requireInteger('numQueryHeads', numQueryHeads, 1);
  requireInteger('numKvHeads', numKvHeads, 1);
  if (numQueryHeads % numKvHeads !== 0) {
    throw attentionError(
      `numKvHeads ${numKvHeads} does not divide numQueryHeads ${numQueryHeads}. Every key-value head serves equally many query heads.`,
    );
  }
  requireDim('headDim', headDim, valuesInKeys ? MAX_LATENT_DIM : MAX_HEAD_DIM);
  requireDim('valueDim', valueDim, valuesInKeys ? MAX_LATENT_VALUE_DIM : MAX_HEAD_DIM);
  if (valuesInKeys && valueDim > headDim) {
    throw attentionError(`valueDim ${valueDim} is more than headDim ${headDim}, but values are part of the keys.`);
  }
  if (!Number.isFinite(scale)) throw attentionError(`scale ${scale} is not a finite number.`);
  if (softCap !== undefined && !(softCap > 0 && softCap < Infinity)) {
    throw attentionError(`softCap ${softCap} is not a finite number above 0. Leave it out for scores without a cap.`);
  }
  if (!Object.hasOwn(NUMBERS_PER_WORD, storage)) {
    throw attentionError(`storage ${storage} is none of ${Object.keys(NUMBERS_PER_WORD).join(', ')}.`);
  }
  return {
    numQueryHeads,
    numKvHeads,
    headDim,
    valueDim,
    valuesInKeys,
    scale,
    learnedSinks,
    selectsBlocks,
    storage,
    ...(softCap === undefined ? {} : { softCap }),
  };
}

/** Sizes of a latent cache, in numbers. */
export interface LatentAttention {
  numQueryHeads: number;
  /** The compressed keys and values that all heads share: 512 in the DeepSeek models. */
  latentDim: number;
  /** The part of the keys with positions rotated in, behind the latent: 64 there. */
  rotatedDim: number;
  /** Factor of scores: 1 / sqrt of a head before its projection was absorbed, which these sizes do not tell. */
  scale: number;
}

/**
 * The shape of multi-head latent attention with absorbed projections: a query head is
 * `[its part projected to the latent | its rotated part]`, an output head is a mean of latents.
 */
export function latentAttention(sizes: LatentAttention): AttentionShape {
  const { numQueryHeads, latentDim, rotatedDim, scale } = sizes;
  return { numQueryHeads, numKvHeads: 1, headDim: latentDim + rotatedDim, valueDim: latentDim, valuesInKeys: true, scale };
}

function requireDim(name: string, dim: number, most: number): void {
  if (dim >= MIN_HEAD_DIM && dim <= most && dim % 4 === 0) return;
  throw attentionError(
    `${name} ${dim} is not a multiple of 4 from ${MIN_HEAD_DIM} to ${most}. Pad the heads with zeros to the next one.`,
  );
}

/** @throws {KernelError} `kernel-dispatch` when `value` is not an integer of at least `least` and below 2^31 */
export function requireInteger(name: string, value: number, least: number): void {
  if (Number.isInteger(value) && value >= least && value < 2 ** 31) return;
  throw attentionError(`${name} is ${value}, not an integer from ${least} on.`);
}

export function attentionError(message: string): KernelError {
  return new KernelError('kernel-dispatch', LABEL, message);
}
