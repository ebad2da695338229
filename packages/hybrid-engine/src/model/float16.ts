const bits = new Uint32Array(1);
const value = new Float32Array(bits.buffer);

/** 2^-24, the smallest positive binary16 number. */
const SUBNORMAL_UNIT = 2 ** -24;

/** The value of an IEEE 754 binary16 number given by its 16 bits. Exact for all 65,536 of them; NaN payloads are kept. */
export function decodeFloat16(half: number): number {
  const exponent = (half >> 10) & 0x1f;
  const mantissa = half & 0x3ff;
  if (exponent === 0) return (half & 0x8000 ? -mantissa : mantissa) * SUBNORMAL_UNIT;
  const wideExponent = exponent === 0x1f ? 0xff : exponent + 112;
  bits[0] = ((half & 0x8000) << 16) | (wideExponent << 23) | (mantissa << 13);
  return value[0];
}

/** The value of a bfloat16 number given by its 16 bits: the upper half of a binary32. */
export function decodeBfloat16(half: number): number {
  bits[0] = half << 16;
  return value[0];
}
