/** How drafts are looked up. All in tokens. */
export interface NgramOptions {
  /** Drafts at most. */
  maxDrafts: number;
  /** Longest ending that is looked for. Default 3. */
  maxNgram?: number;
  /** Shortest. Default 1. */
  minNgram?: number;
}

/**
 * Guesses how a sequence goes on from what it has said before: the longest of its endings that occurred earlier, and what came behind
 * the last such place. Costs a scan of the sequence; no second model (prompt lookup decoding, Saxena 2023).
 *
 * @param tokens the sequence
 * @param length tokens of it that count
 * @returns up to `maxDrafts` tokens; empty when nothing was said twice
 */
export function ngramDrafts(
  tokens: Uint32Array,
  length: number,
  { maxDrafts, maxNgram = 3, minNgram = 1 }: NgramOptions,
): Uint32Array {
  for (let size = Math.min(maxNgram, length - 1); size >= minNgram && maxDrafts > 0; size--) {
    for (let at = length - size - 1; at >= 0; at--) {
      if (!equalRuns(tokens, at, length - size, size)) continue;
      return tokens.slice(at + size, Math.min(at + size + maxDrafts, length));
    }
  }
  return new Uint32Array(0);
}

function equalRuns(tokens: Uint32Array, a: number, b: number, size: number): boolean {
  for (let i = 0; i < size; i++) if (tokens[a + i] !== tokens[b + i]) return false;
  return true;
}
