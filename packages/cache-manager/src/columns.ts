/** A column is a typed array that belongs to one table; tables grow by half, which costs a copy now and no lookups later. */
type Column = Int32Array | Uint32Array | Uint16Array | Uint8Array | Float64Array;

/** A copy of `column` with room for `length` entries; new entries hold `fill`. */
export function grownColumn<T extends Column>(column: T, length: number, fill = 0): T {
  const grown = new (column.constructor as new (length: number) => T)(length);
  grown.set(column);
  if (fill !== 0) grown.fill(fill, column.length);
  return grown;
}

/**
 * How long a column becomes that must have room for at least `needed` entries: longer by half, or as long as it is expected to
 * become in the end, once a quarter of that is in use.
 */
export function grownLength(length: number, needed: number, expected = 0): number {
  if (needed < expected && needed * 4 > expected) return expected;
  return Math.max(needed, length + (length >> 1));
}

/**
 * How long a column of one request becomes that must have room for at least `needed` entries: as long as it is expected to become
 * in the end; beyond that short ones double, and long ones grow by an eighth, since what a long prompt is followed by is short.
 */
export function grownRequestLength(length: number, needed: number, expected: number): number {
  return Math.max(16, needed, expected, length + Math.max(Math.min(length, 1024), length >> 3));
}

/** The entry of an index column that points nowhere. */
export const NONE = -1;
