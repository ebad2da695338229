/** What one group of the manager did over some time, in pages: one page is one block of one group, or one recurrent state. */
export interface PageCounts {
  /** Pages that requests took: for growth, as copies of claims, in place of what they did not reuse. */
  readonly allocatedPages: number;
  /** The same without those that only stand in for pages which the request did not select, or that are never shared. */
  readonly newPages: number;
  /** `fullyReusedPages + partlyReusedPages`. */
  readonly reusedPages: number;
  /** Pages of the match that requests read as they are: whole blocks, and snapshots at the end of a block. */
  readonly fullyReusedPages: number;
  /** Pages of the match that were copied because the request goes on inside their block; snapshots inside a block. */
  readonly partlyReusedPages: number;
  /** Pages of the prompt that were not found. Never of private groups, nor of optional ones that were not selected. */
  readonly missedPages: number;
  /** Pages for tokens behind the prompt. */
  readonly generationPages: number;
  /** Pages copied inside the device: what was matched in part, snapshots, and tails. */
  readonly copiedPages: number;
  readonly copiedBytes: number;
  /** Pages brought from a colder tier to the device, and copies of such pages. */
  readonly onboardedPages: number;
  readonly onboardedBytes: number;
  /** Pages moved from the device to a colder tier. */
  readonly offloadedPages: number;
  readonly offloadedBytes: number;
  /** Pages that a colder tier dropped for want of room. */
  readonly droppedPages: number;
  readonly droppedBytes: number;
  /** `reusedPages / (reusedPages + missedPages)`, 0 when there was neither. */
  readonly hitRate: number;
}

/** How often a recurrent state was looked for. Of groups of state only. */
export interface SnapshotLookups {
  /** Requests with a prompt; of an optional group those that selected it. */
  readonly lookups: number;
  readonly hits: number;
  /** Tokens of the prompts before the snapshot, and behind it. */
  readonly reusedTokens: number;
  readonly unreusedTokens: number;
  /** Hits at the end of a block, and inside one. */
  readonly alignedHits: number;
  readonly unalignedHits: number;
  /** `hits / lookups`, 0 without lookups. */
  readonly hitRate: number;
}

/** Where each counter of a group stands among its counters. */
export const COUNTER = {
  allocatedPages: 0,
  newPages: 1,
  fullyReusedPages: 2,
  partlyReusedPages: 3,
  missedPages: 4,
  generationPages: 5,
  copiedPages: 6,
  copiedBytes: 7,
  onboardedPages: 8,
  onboardedBytes: 9,
  offloadedPages: 10,
  offloadedBytes: 11,
  droppedPages: 12,
  droppedBytes: 13,
  lookups: 14,
  hits: 15,
  reusedTokens: 16,
  unreusedTokens: 17,
  alignedHits: 18,
  unalignedHits: 19,
} as const;

type CounterName = keyof typeof COUNTER;
const NAMES = Object.keys(COUNTER) as CounterName[];
export const NUM_COUNTERS: number = NAMES.length;

/** The counters of one group, in the order of `COUNTER`, for people. */
export function pageCounts(counters: Float64Array): PageCounts {
  const { lookups, hits, reusedTokens, unreusedTokens, alignedHits, unalignedHits, ...pages } = named(counters);
  const reusedPages = pages.fullyReusedPages + pages.partlyReusedPages;
  return { ...pages, reusedPages, hitRate: rate(reusedPages, pages.missedPages) };
}

export function snapshotLookups(counters: Float64Array): SnapshotLookups {
  const { lookups, hits, reusedTokens, unreusedTokens, alignedHits, unalignedHits } = named(counters);
  return { lookups, hits, reusedTokens, unreusedTokens, alignedHits, unalignedHits, hitRate: rate(hits, lookups - hits) };
}

/** `hits` of all that were looked for, 0 when nothing was. */
export function rate(hits: number, misses: number): number {
  return hits + misses === 0 ? 0 : hits / (hits + misses);
}

function named(counters: Float64Array): Record<CounterName, number> {
  return Object.fromEntries(NAMES.map((name) => [name, counters[COUNTER[name]]])) as Record<CounterName, number>;
}
