/**
 * How queries and keys are turned by their position. Pair i of a head turns by
 * `position / positionScale × base^(-2i / dimensions) / factor[i]`; the rest of the head, from `dimensions` on, stays as it is.
 */
export interface RotaryDescription {
  /** Which values of a head are a pair: (2i, 2i + 1), or (i, i + dimensions / 2). */
  readonly pairs: 'interleaved' | 'halves';
  readonly base: number;
  /** Values of a head that turn: even, at most the head's. */
  readonly dimensions: number;
  /** What positions are divided by: 1 unless the model was stretched to longer contexts. */
  readonly positionScale: number;
  /** Whether the tensor `rope_freqs.weight`, `[dimensions / 2]`, has the factors; else they are 1. */
  readonly hasFactors: boolean;
}
