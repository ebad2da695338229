/**
 * Rotary positions as their definition says it: turns the pair (i, i + headDim / 2) of every head by
 * `position * theta ** (-2i / headDim)`.
 *
 * @param heads `[numTokens, numHeads, headDim]`, unchanged
 * @param positions `[numTokens]`
 */
export function ropeReference(
  heads: Float32Array,
  positions: ArrayLike<number>,
  { headDim, ropeTheta }: { headDim: number; ropeTheta: number },
): Float32Array {
  const result = heads.slice();
  const rowSize = heads.length / positions.length;
  const half = headDim / 2;
  for (let at = 0; at < heads.length; at++) {
    const i = at % headDim;
    if (i >= half) continue;
    const angle = positions[Math.floor(at / rowSize)] * ropeTheta ** ((-2 * i) / headDim);
    result[at] = heads[at] * Math.cos(angle) - heads[at + half] * Math.sin(angle);
    result[at + half] = heads[at + half] * Math.cos(angle) + heads[at] * Math.sin(angle);
  }
  return result;
}
