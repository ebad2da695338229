/** An exact fraction in lowest terms: `num >= 0`, `den >= 1`. */
export interface Rational {
  num: number;
  den: number;
}

/**
 * The fraction `num / den` in lowest terms.
 *
 * @param num integer >= 0
 * @param den integer >= 1
 * @example rational(8, 64)   // { num: 1, den: 8 }
 */
export function rational(num: number, den: number): Rational {
  const divisor = greatestCommonDivisor(num, den);
  return { num: num / divisor, den: den / divisor };
}

/** Whether `a > b`, decided by cross-multiplication; numerators and denominators stay below 2^26. */
export function isGreater(a: Rational, b: Rational): boolean {
  return a.num * b.den > b.num * a.den;
}

/**
 * `ceil(count × fraction)` in integers. The whole multiples of the denominator are split off first, so that no product is
 * larger than the result or `den × num`.
 *
 * @param count integer >= 0
 */
export function ceilMul(count: number, fraction: Rational): number {
  const rest = count % fraction.den;
  const wholes = (count - rest) / fraction.den;
  return wholes * fraction.num + ceilDiv(rest * fraction.num, fraction.den);
}

function ceilDiv(dividend: number, divisor: number): number {
  const rest = dividend % divisor;
  return (dividend - rest) / divisor + (rest === 0 ? 0 : 1);
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
