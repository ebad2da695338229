import { StateError } from '@bufferwise/core-policy';
import { MAX_PRIORITY } from '../eviction/lru-queue.ts';
import { FOREVER, type PageId, rowOf } from '../page/page-table.ts';
import type { StorageManager } from '../storage/storage-manager.ts';

/** How firmly, and for how long, the pages of a run of tokens are kept once nobody holds them. */
export interface RetentionRange {
  /** First token. */
  begin: number;
  /** The token behind the last. Left out: wherever the request ends. */
  end?: number;
  /** 0 … 100; lower is evicted first. What nobody said anything about has 35. */
  priority: number;
  /**
   * Milliseconds for which the priority holds once the last holder has let go; every later use starts them anew. Then it is the
   * usual one again. Left out: it holds for good.
   */
  durationMs?: number;
}

/** The ranges of one request, by block. A block that several touch goes by the highest priority, then by the longest time. */
export class Retention {
  readonly #ranges: readonly Required<RetentionRange>[];
  readonly #tokensPerBlock: number;

  /** @throws {StateError} `invalid-retention` on a range that is empty, or on a priority or duration that is none */
  constructor(ranges: readonly RetentionRange[], tokensPerBlock: number) {
    this.#tokensPerBlock = tokensPerBlock;
    this.#ranges = ranges.map(checkedRange).sort((a, b) => b.priority - a.priority || b.durationMs - a.durationMs);
  }

  /** The priority of a block; undefined when no range touches it. */
  priorityOf(ordinal: number): number | undefined {
    return this.#rangeOf(ordinal)?.priority;
  }

  /**
   * Gives a page what its block is due, unless others want it kept more firmly, or as firmly and for longer. Only while the page
   * is held: queues sort by priority when a page comes in.
   *
   * @param isOwn whether the request has written the page; else what it has without a duration, it has for good
   */
  apply(storage: StorageManager, page: PageId, ordinal: number, isOwn: boolean): void {
    const { pages } = storage;
    const range = this.#rangeOf(ordinal);
    if (range === undefined || range.priority < pages.priority[page]) return;
    pages.keepDurations();
    const isEqual = range.priority === pages.priority[page];
    if (isEqual && !isOwn && pages.durationMs[rowOf(page)] === 0) return;
    pages.durationMs[rowOf(page)] = isEqual ? Math.max(pages.durationMs[rowOf(page)], range.durationMs) : range.durationMs;
    storage.setPriority(page, range.priority);
  }

  #rangeOf(ordinal: number): Required<RetentionRange> | undefined {
    const begin = ordinal * this.#tokensPerBlock;
    return this.#ranges.find((range) => range.begin < begin + this.#tokensPerBlock && range.end > begin);
  }
}

function checkedRange(
  { begin, end = Number.POSITIVE_INFINITY, priority, durationMs = FOREVER }: RetentionRange,
  index: number,
): Required<RetentionRange> {
  const fail = (what: string): never => {
    throw new StateError('invalid-retention', `createKvCache: retention[${index}] ${what}`);
  };
  if (!(Number.isSafeInteger(begin) && begin >= 0)) fail(`begins at ${begin}; it must be a whole number of tokens, from 0 on`);
  if (!(end > begin)) fail(`is empty: it runs from ${begin} to ${end}`);
  if (!(Number.isInteger(priority) && priority >= 0 && priority <= MAX_PRIORITY)) {
    fail(`has priority ${priority}; priorities are whole numbers from 0 to ${MAX_PRIORITY}`);
  }
  if (!(Number.isInteger(durationMs) && durationMs > 0 && durationMs <= FOREVER)) {
    fail(`has durationMs ${durationMs}; it must be a whole number of milliseconds from 1 to ${FOREVER - 1}, or left out`);
  }
  return { begin, end, priority, durationMs };
}
