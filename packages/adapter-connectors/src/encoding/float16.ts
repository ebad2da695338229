/** Values of all halves, made when the first is asked for: a table is the fastest way where there is no `Float16Array`. */
let values: Float32Array | undefined;
const number = new Float32Array(1);
const bits = new Uint32Array(number.buffer);

/** The numbers of IEEE 754 binary16 bits, exactly. */
export function fromHalves(halves: Uint16Array): Float32Array {
  values ??= Float32Array.from({ length: 1 << 16 }, (_, half) => numberOf(half));
  const numbers = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i++) numbers[i] = values[halves[i]];
  return numbers;
}

/** The nearest binary16 bits of numbers, ties to even; infinite beyond 65 504 and half a step. */
export function toHalves(numbers: Float32Array): Uint16Array {
  const halves = new Uint16Array(numbers.length);
  for (let i = 0; i < numbers.length; i++) {
    number[0] = numbers[i];
    const sign = (bits[0] >>> 16) & 0x8000;
    halves[i] = sign | magnitude(bits[0] & 0x7fffffff);
  }
  return halves;
}

function numberOf(half: number): number {
  const exponent = (half >> 10) & 31;
  const mantissa = half & 1023;
  const sign = half & 0x8000 ? -1 : 1;
  if (exponent === 31) return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? mantissa * 2 ** -24 : (1024 + mantissa) * 2 ** (exponent - 25));
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
