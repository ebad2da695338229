/** A token that could stand in a place, and how likely it is there. */
export interface LikelyToken {
  readonly token: number;
  /** Natural logarithm of its probability. */
  readonly logProbability: number;
}

/**
 * The most likely tokens, best first; of equals the lowest id first.
 *
 * @param logits `[vocabSize] f32`, at least one of them finite
 */
export function topTokens(logits: Float32Array, count: number): LikelyToken[] {
  if (count === 0) return [];
  const best: number[] = [];
  for (let token = 0; token < logits.length; token++) {
    if (best.length === count && logits[token] <= logits[best[count - 1]]) continue;
    let at = best.length;
    while (at > 0 && logits[best[at - 1]] < logits[token]) at--;
    best.splice(at, 0, token);
    best.length = Math.min(best.length, count);
  }
  const highest = logits[best[0]];
  const logTotal = highest + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - highest), 0));
  return best.map((token) => ({ token, logProbability: logits[token] - logTotal }));
}
