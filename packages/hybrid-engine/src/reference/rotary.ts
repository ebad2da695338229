import type { RotaryDescription } from '../description/rotary.ts';

/**
 * Turns each head by its position, in place.
 *
 * @param heads `[numHeads, headDim]`
 * @param factors `[dimensions / 2]`, where the description has them
 */
export function turn(
  heads: Float32Array,
  headDim: number,
  position: number,
  rotary: RotaryDescription,
  factors?: Float32Array,
): void {
  const { pairs, base, dimensions, positionScale } = rotary;
  const half = dimensions / 2;
  for (let i = 0; i < half; i++) {
    const angle = ((position / positionScale) * base ** (-i / half)) / (factors?.[i] ?? 1);
    const cos = Math.cos(angle);
    const sin = Math.sin(angle);
    const [first, second] = pairs === 'interleaved' ? [2 * i, 2 * i + 1] : [i, i + half];
    for (let head = 0; head < heads.length; head += headDim) {
      const a = heads[head + first];
      const b = heads[head + second];
      heads[head + first] = a * cos - b * sin;
      heads[head + second] = b * cos + a * sin;
    }
  }
}
