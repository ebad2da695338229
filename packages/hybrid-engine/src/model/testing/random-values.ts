import { decodeHalf } from '@bufferwise/adapter-kit';
import { Random } from '../../sampling/random.ts';
import type { WeightTensor } from '../weight-tensor.ts';

/** Values for tests of kernels, the same for the same seed. */
export class RandomValues {
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  /** A whole number of `[least, most]`. */
  integer(least: number, most: number): number {
    return least + Math.floor(this.#random.next() * (most - least + 1));
  }

  /** One of the values. */
  pick<T>(values: readonly T[]): T {
    return values[this.integer(0, values.length - 1)];
  }

  /** Between -1 and 1. */
  f32(length: number): Float32Array<ArrayBuffer> {
    return Float32Array.from({ length }, () => this.#random.next() * 2 - 1);
  }

  /** binary16 numbers from -1 to 1, subnormal ones among them: their bits, and what they stand for. */
  f16(length: number): { bits: Uint16Array<ArrayBuffer>; values: Float32Array } {
    const bits = Uint16Array.from({ length }, () => this.integer(0, 0x3c00) | (this.integer(0, 1) << 15));
    return { bits, values: Float32Array.from(bits, decodeHalf) };
  }
}

/**
 * Largest difference relative to the larger of 1 and the expected value. Infinite when the lengths differ, or when one value is
 * NaN and the other is not.
 */
export function largestError(found: Float32Array, expected: Float32Array): number {
  if (found.length !== expected.length) return Number.POSITIVE_INFINITY;
  let largest = 0;
  for (let i = 0; i < found.length; i++) {
    if (Number.isNaN(found[i]) && Number.isNaN(expected[i])) continue;
    const error = Math.abs(found[i] - expected[i]) / Math.max(1, Math.abs(expected[i]));
    if (!(error <= largest)) largest = Number.isNaN(error) ? Number.POSITIVE_INFINITY : error;
  }
  return largest;
}

/** Rows at an offset and a stride, with NaN before, between and behind them: what must not be read into a result, or be written. */
export function spreadRows(
  rows: Float32Array,
  numRows: number,
  { offsetWords, strideWords }: { offsetWords: number; strideWords: number },
): Float32Array<ArrayBuffer> {
  const words = new Float32Array(offsetWords + numRows * strideWords).fill(Number.NaN);
  const size = rows.length / numRows;
  for (let r = 0; r < numRows; r++) words.set(rows.subarray(r * size, (r + 1) * size), offsetWords + r * strideWords);
  return words;
}

/** A tensor of binary16 values, as a weight file gives it. */
export function halfTensor(name: string, { bits }: { bits: Uint16Array<ArrayBuffer> }, shape: readonly number[]): WeightTensor {
  return { name, type: 'F16', shape, numElements: bits.length, bytes: new Uint8Array(bits.buffer) };
}

/** A tensor of binary32 values, as a weight file gives it. */
export function singleTensor(name: string, values: Float32Array<ArrayBuffer>, shape: readonly number[]): WeightTensor {
  return { name, type: 'F32', shape, numElements: values.length, bytes: new Uint8Array(values.buffer) };
}
