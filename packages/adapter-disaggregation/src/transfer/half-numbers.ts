const bits = new Uint32Array(1);
const value = new Float32Array(bits.buffer);

/** The IEEE 754 binary16 number nearest to a binary32 one, as 16 bits: of two equally near the even one. Too large ones become infinite. */
export function encodeHalf(number: number): number {
  value[0] = number;
  const sign = (bits[0] >>> 16) & 0x8000;
  const magnitude = bits[0] & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  // From here on rounding would reach 2^16.
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude < 0x38800000) {
    // Below the smallest normal number steps are of 2^-24.
    const steps = Math.abs(value[0]) * 2 ** 24;
    const lower = Math.floor(steps);
    const rest = steps - lower;
    return sign | (rest > 0.5 || (rest === 0.5 && (lower & 1) === 1) ? lower + 1 : lower);
  }
  const isEven = ((magnitude >>> 13) & 1) === 0;
  return sign | ((magnitude - 0x38000000 + (isEven ? 0xfff : 0x1000)) >>> 13);
}

/** The value of an IEEE 754 binary16 number given by its 16 bits. */
export function decodeHalf(half: number): number {
  const exponent = (half >>> 10) & 0x1f;
  const mantissa = half & 0x3ff;
  if (exponent === 0) return (half & 0x8000 ? -mantissa : mantissa) * 2 ** -24;
  bits[0] = ((half & 0x8000) << 16) | ((exponent === 0x1f ? 0xff : exponent + 112) << 23) | (mantissa << 13);
  return value[0];
}
