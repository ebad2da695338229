/** A 32-bit hash of `count` token ids from `offset` on. It narrows a lookup; tokens decide. */
export type TokenHash = (values: Uint32Array, offset: number, count: number) => number;

/** A fast one. Anybody can construct collisions; they cost time and nothing else. */
export function hashTokens(values: Uint32Array, offset: number, count: number): number {
  let hash = count | 0;
  for (let i = offset; i < offset + count; i++) {
    hash = Math.imul(hash ^ values[i], 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  return hash;
}
