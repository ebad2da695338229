import { KernelError } from '../../errors/kernel-error.ts';

/** Sizes of an attention layer, and how its scores are made. */
export interface AttentionShape {
  /** A multiple of `numKvHeads`: query head h reads key-value head `floor(h / (numQueryHeads / numKvHeads))`. */
  numQueryHeads: number;
  numKvHeads: number;
  /** Numbers in one head of a query, key or value: a multiple of 4, from 32 to 256. */
  headDim: number;
  /** Factor of the product of query and key. Default `1 / sqrt(headDim)`. */
  scale?: number;
  /** When given, a score s becomes `softCap * tanh(s / softCap)`. Above 0. */
  softCap?: number;
}

export const LABEL = 'paged-attention';

const MIN_HEAD_DIM = 32;
const MAX_HEAD_DIM = 256;

/** @throws {KernelError} `kernel-dispatch` when the shape is not one that the kernels serve */
export function requireAttentionShape(shape: AttentionShape): void {
  const { numQueryHeads, numKvHeads, headDim, scale = 1, softCap } = shape;
  requireInteger('numQueryHeads', numQueryHeads, 1);
  requireInteger('numKvHeads', numKvHeads, 1);
  if (numQueryHeads % numKvHeads !== 0) {
    throw attentionError(
      `numKvHeads ${numKvHeads} does not divide numQueryHeads ${numQueryHeads}. Every key-value head serves equally many query heads.`,
    );
  }
  if (!(headDim >= MIN_HEAD_DIM && headDim <= MAX_HEAD_DIM && headDim % 4 === 0)) {
    throw attentionError(
      `headDim ${headDim} is not a multiple of 4 from ${MIN_HEAD_DIM} to ${MAX_HEAD_DIM}. Pad the heads with zeros to the next one.`,
    );
  }
  if (!Number.isFinite(scale)) throw attentionError(`scale ${scale} is not a finite number.`);
  if (softCap !== undefined && !(softCap > 0 && softCap < Infinity)) {
    throw attentionError(`softCap ${softCap} is not a finite number above 0. Leave it out for scores without a cap.`);
  }
}

/** @throws {KernelError} `kernel-dispatch` when `value` is not an integer of at least `least` and below 2^31 */
export function requireInteger(name: string, value: number, least: number): void {
  if (Number.isInteger(value) && value >= least && value < 2 ** 31) return;
  throw attentionError(`${name} is ${value}, not an integer from ${least} on.`);
}

export function attentionError(message: string): KernelError {
  return new KernelError('kernel-dispatch', LABEL, message);
}
