const number = new Float32Array(1);
const bits = new Uint32Array(number.buffer);
/** Values of all halves, made when the first array is asked for: a table is the fastest way where there is no `Float16Array`. */
let values: Float32Array | undefined;

/** The value of an IEEE 754 binary16 number given by its 16 bits. Exact for all 65,536 of them; NaN payloads are kept. */
export function decodeHalf(half: number): number {
  const exponent = (half >>> 10) & 0x1f;
  const mantissa = half & 0x3ff;
  if (exponent === 0) return (half & 0x8000 ? -mantissa : mantissa) * 2 ** -24;
  bits[0] = ((half & 0x8000) << 16) | ((exponent === 0x1f ? 0xff : exponent + 112) << 23) | (mantissa << 13);
  return number[0];
}

/** The 16 bits of the binary16 number that is nearest to a binary32 one, ties to even; infinite beyond 65 504 and half a step. */
export function encodeHalf(single: number): number {
  number[0] = single;
  const sign = (bits[0] >>> 16) & 0x8000;
  return sign | magnitude(bits[0] & 0x7fffffff);
}

/** As `decodeHalf`, of many. */
export function decodeHalves(halves: Uint16Array): Float32Array {
  values ??= Float32Array.from({ length: 1 << 16 }, (_, half) => decodeHalf(half));
  const singles = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i++) singles[i] = values[halves[i]];
  return singles;
}

/** As `encodeHalf`, of many. */
export function encodeHalves(singles: Float32Array): Uint16Array {
  const halves = new Uint16Array(singles.length);
  for (let i = 0; i < singles.length; i++) halves[i] = encodeHalf(singles[i]);
  return halves;
}

/** @param single bits of a number that is not negative */
function magnitude(single: number): number {
  if (single > 0x7f800000) return 0x7e00;
  if (single >= 0x477ff000) return 0x7c00;
  // The smallest normal half is 2^-14. Below it a step is 2^-24, which is that of singles from 0.5 on.
  if (single < 0x38800000) {
    bits[0] = single;
    number[0] += 0.5;
    return bits[0] - 0x3f000000;
  }
  return (single - 0x38000000 + 0xfff + ((single >> 13) & 1)) >> 13;
}
