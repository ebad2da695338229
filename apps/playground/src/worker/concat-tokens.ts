/** Token ids one behind the other. */
export function concatTokens(...parts: readonly ArrayLike<number>[]): Uint32Array<ArrayBuffer> {
  const joined = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
