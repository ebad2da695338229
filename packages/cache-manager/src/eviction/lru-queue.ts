import { NONE } from '../columns.ts';
import type { PageId, PageTable } from '../page/page-table.ts';

const NUM_PRIORITIES = 101;

/** Priorities run from 0 to this; lower is evicted first. */
export const MAX_PRIORITY = NUM_PRIORITIES - 1;
export const DEFAULT_PRIORITY = 35;

/**
 * The droppable pages of one pool group, ordered by priority, then by how long ago they were last let go.
 * The links live in the page table; every operation but `first` after a removal is O(1), and none makes garbage.
 */
export class LruQueue {
  readonly #pages: PageTable;
  readonly #heads = new Int32Array(NUM_PRIORITIES).fill(NONE);
  readonly #tails = new Int32Array(NUM_PRIORITIES).fill(NONE);
  #lowest = NUM_PRIORITIES;
  #count = 0;

  constructor(pages: PageTable) {
    this.#pages = pages;
  }

  get count(): number {
    return this.#count;
  }

  /** Puts a page behind all others of its priority. */
  push(page: PageId): void {
    const { nextInQueue, previousInQueue, priority } = this.#pages;
    const level = priority[page];
    const tail = this.#tails[level];
    previousInQueue[page] = tail;
    nextInQueue[page] = NONE;
    if (tail === NONE) this.#heads[level] = page;
    else nextInQueue[tail] = page;
    this.#tails[level] = page;
    if (level < this.#lowest) this.#lowest = level;
    this.#count++;
  }

  remove(page: PageId): void {
    const { nextInQueue, previousInQueue, priority } = this.#pages;
    const level = priority[page];
    const next = nextInQueue[page];
    const previous = previousInQueue[page];
    if (previous === NONE) this.#heads[level] = next;
    else nextInQueue[previous] = next;
    if (next === NONE) this.#tails[level] = previous;
    else previousInQueue[next] = previous;
    nextInQueue[page] = NONE;
    previousInQueue[page] = NONE;
    this.#count--;
  }

  /** The page to evict next, or NONE. */
  first(): PageId {
    while (this.#lowest < NUM_PRIORITIES && this.#heads[this.#lowest] === NONE) this.#lowest++;
    return this.#lowest < NUM_PRIORITIES ? this.#heads[this.#lowest] : NONE;
  }

  /** The pages in the order in which they would be evicted. For checks and tools, not for hot paths. */
  *[Symbol.iterator](): Generator<PageId> {
    for (let level = 0; level < NUM_PRIORITIES; level++) {
      for (let page = this.#heads[level]; page !== NONE; page = this.#pages.nextInQueue[page]) yield page;
    }
  }
}
