import { type Choice, describeChoice } from './log-probability.ts';

/**
 * The most likely tokens, best first; of equals the lowest id first.
 *
 * @param logits `[vocabSize] f32`, not empty; minus infinity forbids a token
 * @param count  >= 1; fewer come back where fewer are possible
 * @throws {SamplingError} `sampling-logits` when they hold NaN or plus infinity, or nothing finite
 */
export function mostLikely(logits: Float32Array, count: number): Choice[] {
  const best: number[] = [];
  for (let token = 0; token < logits.length; token++) {
    let at = best.length;
    while (at > 0 && logits[token] > logits[best[at - 1]]) at--;
    if (at >= count || logits[token] === Number.NEGATIVE_INFINITY) continue;
    best.splice(at, 0, token);
    if (best.length > count) best.pop();
  }
  const highest = best.length > 0 ? logits[best[0]] : Number.NaN;
  // Of no token at all: for the error that says so.
  if (best.length === 0) describeChoice(logits, 0, highest);
  return best.map((token) => describeChoice(logits, token, highest));
}
