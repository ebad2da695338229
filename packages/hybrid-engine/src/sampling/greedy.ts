import { type Choice, describeChoice } from './log-probability.ts';

/**
 * The most likely token. Of equals, the lowest id.
 *
 * @param logits `[vocabSize] f32`, not empty; minus infinity forbids a token
 * @throws {SamplingError} `sampling-logits` when they hold NaN or plus infinity, or nothing finite
 */
export function chooseGreedy(logits: Float32Array): Choice {
  let token = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i] > logits[token]) token = i;
  return describeChoice(logits, token, logits[token]);
}
