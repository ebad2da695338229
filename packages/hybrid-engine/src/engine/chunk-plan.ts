/** What decides where a prompt is cut. All in tokens from its beginning. */
export interface ChunkPlanInput {
  /** Tokens that are reused: the first chunk begins here, below `promptLength`. */
  matched: number;
  promptLength: number;
  /** Tokens of a chunk at most, and the grid that chunks end on. */
  chunkTokens: number;
  /** Where one turn ends and the next begins: later requests are likely to share exactly this much. */
  turnBorders: readonly number[];
  /** How far the tree knew the prompt: what others share already, and would share again. */
  sharedDepth: number;
  /** A shared depth less than this beyond the match is not worth a snapshot. */
  minGain: number;
}

/**
 * Where the chunks of a prompt end, ascending, the last one at its length. At each end the recurrent state is kept, so the
 * ends are the places from which later requests can continue: on one grid for all requests, at turn borders, where the path
 * was known although its state was not, and just before the last token, so that the same prompt again computes one token.
 */
export function planChunks(input: ChunkPlanInput): number[] {
  const { matched, promptLength, chunkTokens, turnBorders, sharedDepth, minGain } = input;
  const ends = new Set<number>([promptLength, promptLength - 1, ...turnBorders]);
  if (sharedDepth >= matched + minGain) ends.add(sharedDepth);
  for (let end = (Math.floor(matched / chunkTokens) + 1) * chunkTokens; end < promptLength; end += chunkTokens) ends.add(end);
  return [...ends].filter((end) => end > matched && end <= promptLength).sort((a, b) => a - b);
}
