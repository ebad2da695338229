import { SamplingError } from './sampling-error.ts';

/** A token that was chosen. */
export interface Choice {
  token: number;
  /** Natural logarithm of the token's probability under the logits as they are, before temperature and filters. */
  logProbability: number;
}

/**
 * A choice with its log-probability.
 *
 * @param highest the largest of the logits
 * @throws {SamplingError} `sampling-logits` when the logits hold NaN or plus infinity, or are all minus infinity
 */
export function describeChoice(logits: Float32Array, token: number, highest: number): Choice {
  let total = 0;
  for (let i = 0; i < logits.length; i++) total += Math.exp(logits[i] - highest);
  const logProbability = logits[token] - highest - Math.log(total);
  if (!Number.isFinite(logProbability)) {
    throw new SamplingError(
      'sampling-logits',
      'The logits hold no finite number, or NaN. Check the weights and the kernels of this step.',
    );
  }
  return { token, logProbability };
}
