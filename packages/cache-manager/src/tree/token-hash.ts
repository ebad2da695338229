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

/** The hash of a path that a piece of tokens with these ends continues. Two tokens tell pieces apart well enough to count by. */
export function chainHash(path: number, firstToken: number, lastToken: number): number {
  let chained = Math.imul(path ^ firstToken, 0x85ebca6b);
  chained = Math.imul(chained ^ (chained >>> 16) ^ lastToken, 0x45d9f3b);
  return chained ^ (chained >>> 15);
}

/** A 32-bit hash of a text. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash | 0;
}
