/** What decides where a prompt is cut. All in tokens from its beginning. */
export interface ChunkPlanInput {
  /** Tokens that are reused: the first chunk begins here, below `promptLength`. */
  matched: number;
  promptLength: number;
  /** Tokens of a chunk at most, and the grid that chunks end on. */
  chunkTokens: number;
  /** Where a snapshot is worth having (`KvCache.snapshotPoints`): chunks end there, too. */
  snapshotPoints: readonly number[];
}

/**
 * Where the chunks of a prompt end, ascending, the last one at its length. At each end the recurrent state is kept, so the ends
 * are the places from which later requests can continue.
 */
export function planChunks({ matched, promptLength, chunkTokens, snapshotPoints }: ChunkPlanInput): number[] {
  const ends = new Set<number>([...snapshotPoints, promptLength]);
  for (let end = (Math.floor(matched / chunkTokens) + 1) * chunkTokens; end < promptLength; end += chunkTokens) ends.add(end);
  return [...ends].filter((end) => end > matched && end <= promptLength).sort((a, b) => a - b);
}
