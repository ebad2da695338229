/** Beyond every block. Small, so that the field it stands in never needs memory of its own. */
const NEVER = 0x3fffffff;

/** What the statistics remember of one request, so that pages which it gives back unused can be taken out again. */
export class RequestGrowth {
  /** The window of `takeIterationStatistics` that `countedFrom` is about. */
  window = -1;
  /** Blocks from here on were counted in that window, once for each of so many beams. */
  countedFrom = 0;
  numBeams = 1;
  /** Blocks from here on were for generated tokens when they were counted. */
  generationFrom = NEVER;
}
