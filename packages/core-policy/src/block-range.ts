/** Block ordinals from `begin` up to, not including, `end`. Empty when both are equal. */
export interface BlockRange {
  begin: number;
  end: number;
}

/** `ceil(dividend / divisor)`, exact for safe integers with dividend >= 0 and divisor > 0. */
export function divUp(dividend: number, divisor: number): number {
  return Math.ceil(dividend / divisor);
}

/** `floor(dividend / divisor)`, exact for safe integers with divisor > 0. */
export function divDown(dividend: number, divisor: number): number {
  return Math.floor(dividend / divisor);
}

/** The largest multiple of `step` that is at most `value`; safe integers, value >= 0, step > 0. */
export function alignDown(value: number, step: number): number {
  return value - (value % step);
}
