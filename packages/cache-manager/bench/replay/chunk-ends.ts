/**
 * Where a prompt of a model with recurrent state is cut, as the engine cuts it: on a grid, at the depth that others share, and
 * just before the last token. Ascending, the last end is the prompt's.
 */
export function chunkEnds(prompt: {
  matched: number;
  length: number;
  grid: number;
  sharedDepth: number;
  minGain: number;
}): number[] {
  const { matched, length, grid, sharedDepth, minGain } = prompt;
  const ends = new Set([length, length - 1]);
  if (sharedDepth >= matched + minGain) ends.add(sharedDepth);
  for (let end = (Math.floor(matched / grid) + 1) * grid; end < length; end += grid) ends.add(end);
  return [...ends].filter((end) => end > matched && end <= length).sort((a, b) => a - b);
}
