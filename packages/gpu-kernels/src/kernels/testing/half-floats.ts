/** IEEE 754 binary16 for tests: Node 20 has no Float16Array. */

const word = new Uint32Array(1);
const float = new Float32Array(word.buffer);

/** The 16 bits of the number nearest to `value`, of two the even one; beyond the largest, infinity. */
export function halfBits(value: number): number {
  float[0] = value;
  const sign = (word[0] >>> 16) & 0x8000;
  if (Number.isNaN(value)) return 0x7e00;
  const magnitude = Math.abs(float[0]);
  if (magnitude >= 65520) return sign | 0x7c00;
  const exponent = magnitude < 2 ** -14 ? -14 : Math.floor(Math.log2(magnitude));
  const unit = 2 ** (exponent - 10);
  const below = Math.floor(magnitude / unit);
  const rest = magnitude / unit - below;
  const units = rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
  // 1,024 units begin the numbers of an exponent; a carry walks into the next one by itself.
  return sign | (exponent === -14 ? units : ((exponent + 14) << 10) + units);
}

/** The number of 16 bits. */
export function halfNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const mantissa = bits & 0x3ff;
  if (exponent === 0x1f) return mantissa ? Number.NaN : sign * Infinity;
  return exponent === 0 ? sign * mantissa * 2 ** -24 : sign * (1024 + mantissa) * 2 ** (exponent - 25);
}
