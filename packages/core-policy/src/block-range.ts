/** Block ordinals from `begin` up to, not including, `end`. Empty when both are equal. */
export interface BlockRange {
  begin: number;
  end: number;
}

/** `ceil(dividend / divisor)` of integers, dividend >= 0, divisor > 0. */
export function divUp(dividend: number, divisor: number): number {
  return Math.ceil(dividend / divisor);
}
