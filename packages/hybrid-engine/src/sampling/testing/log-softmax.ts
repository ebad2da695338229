/** Natural logarithms of the probabilities that logits stand for, in double precision. */
export function logSoftmax(logits: Float32Array): Float64Array {
  const best = logits.reduce((a, b) => Math.max(a, b));
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - best), 0);
  return Float64Array.from(logits, (logit) => logit - best - Math.log(total));
}
