import { grownColumn, grownLength, NONE } from '../columns.ts';

/** Where a page's record begins in its table: a multiple of `PAGE_FIELDS`. Ids are used again once the page is gone. */
export type PageId = number;

/** The duration of what holds for good. */
export const FOREVER = 0xffffffff;

/** Fields of a record, of four bytes each: as much as the processor fetches at once. */
export const PAGE_FIELDS = 16;
const LOG_FIELDS = 4;
const INITIAL_PAGES = 64;

/** Whether a page waits in the eviction queue of its tier, and as what. */
export const QUEUED_NOT = 0;
/** Nobody holds it: it may go to a colder tier, or vanish. */
export const QUEUED_DROPPABLE = 1;
/** Somebody holds it: it may go to a colder tier. */
export const QUEUED_HELD = 2;

/**
 * The pages as records: which slot of which tier, how far they are good, who holds them.
 *
 * A page has a slot of its lifecycle's pool group in its tier as long as it exists. `block` is the tree block that lists it,
 * or NONE: then it belongs to the requests that hold it alone, and goes when the last of them lets go. A listed page that
 * nobody holds is droppable. `StorageManager` keeps all fields but `block`, `coverage` and `nextInBlock`, which are the tree's.
 *
 * Each field is a view of all records that begins at its place in the first: `pages.slot[page]`. So the fields of one page stand
 * side by side, and whoever touches one has fetched the others. What is rarely asked for, or is no 32-bit integer, is a column of
 * its own, by `rowOf(page)`.
 */
export class PageTable {
  lifecycle!: Int32Array;
  /** Index of the tier, 0 = device. */
  tier!: Int32Array;
  slot!: Int32Array;
  block!: Int32Array;
  /** Attention: tokens of the block that the page is good for. SSM: the exact count of tokens inside the block, 1 … tokensPerBlock. */
  coverage!: Int32Array;
  /** How often requests name it. */
  holds!: Int32Array;
  /** How often active requests do: it stays on the device, in its slot. Never more than `holds`. */
  locks!: Int32Array;
  /** How many moves under way need it where it is: it neither leaves its slot nor ends meanwhile. */
  pins!: Int32Array;
  /** `QUEUED_NOT`, `QUEUED_DROPPABLE` or `QUEUED_HELD`. */
  queued!: Int32Array;
  priority!: Int32Array;
  /** Next page of the same block and lifecycle (snapshots at other counts). */
  nextInBlock!: Int32Array;
  /** Requests that have continued from the page, 255 at most. */
  reuses!: Int32Array;
  /** What its last holder used it for (`PageUse`). */
  use!: Int32Array;
  /** The queue's list it is in, for queues of several. */
  listInQueue!: Int32Array;
  nextInQueue!: Int32Array;
  previousInQueue!: Int32Array;
  /** By row: when it last came into the queue, by the queue's clock; 0: never. */
  stamp: Float64Array = new Float64Array(INITIAL_PAGES);
  /** By row: when it last came into a queue of its tier, a count of all such events. */
  queuedAt: Float64Array = new Float64Array(INITIAL_PAGES);
  /** Whether the next two columns are kept: they are as long as the others from `keepDurations` on, and empty before. */
  hasDurations = false;
  /** By row: milliseconds in the queue after which the priority falls back to the usual one; 0: nobody said, `FOREVER`: never. */
  durationMs: Uint32Array = new Uint32Array(0);
  /** By row: when it does; 0 while somebody holds the page. */
  expiresAt: Float64Array = new Float64Array(0);
  /** Drop plans that name a page and were not carried out yet, for the few pages that are named. Gone with the page. */
  readonly plans = new Map<PageId, { count: number }>();
  /** Pages that there will be when all memory is used; 0 when nobody knows. Spares the last steps of growing. */
  expectedSize = 0;
  #records!: Int32Array;
  #free: number[] = [];
  #size = 0;

  constructor() {
    this.#setRecords(new Int32Array(INITIAL_PAGES * PAGE_FIELDS));
  }

  /** Pages that there were at the same time, at most: every live page's row is below. */
  get size(): number {
    return this.#size;
  }

  /** Every page there is, by id. For checks, tools and rare changes, not for hot paths. */
  *[Symbol.iterator](): Generator<PageId> {
    for (let row = 0; row < this.#size; row++) if (this.isLive(row << LOG_FIELDS)) yield row << LOG_FIELDS;
  }

  /** A page that nobody holds yet and no block lists; on the device unless said. */
  create(lifecycle: number, slot: number, priority: number, tier = 0): PageId {
    const page = this.#free.pop() ?? this.#nextId();
    this.lifecycle[page] = lifecycle;
    this.tier[page] = tier;
    this.slot[page] = slot;
    this.block[page] = NONE;
    this.coverage[page] = 0;
    this.holds[page] = 0;
    this.priority[page] = priority;
    this.nextInBlock[page] = NONE;
    this.reuses[page] = 0;
    this.use[page] = 0;
    const row = rowOf(page);
    this.stamp[row] = 0;
    if (this.hasDurations) {
      this.durationMs[row] = 0;
      this.expiresAt[row] = 0;
    }
    return page;
  }

  /** Gives the id back. The page must be neither queued, locked, pinned nor landing. */
  destroy(page: PageId): void {
    this.slot[page] = NONE;
    if (this.plans.size > 0) this.plans.delete(page);
    this.#free.push(page);
  }

  /** To be called before a page gets a duration: few managers have any use for them. */
  keepDurations(): void {
    if (this.hasDurations) return;
    this.hasDurations = true;
    this.#growDurations(this.stamp.length);
  }

  isLive(page: PageId): boolean {
    return this.slot[page] !== NONE;
  }

  #nextId(): PageId {
    if (this.#size === this.stamp.length) this.#grow(grownLength(this.#size, this.#size + 1, this.expectedSize));
    const page = this.#size++ << LOG_FIELDS;
    this.nextInQueue[page] = NONE;
    this.previousInQueue[page] = NONE;
    return page;
  }

  #grow(pages: number): void {
    this.#setRecords(grownColumn(this.#records, pages * PAGE_FIELDS));
    this.stamp = grownColumn(this.stamp, pages);
    this.queuedAt = grownColumn(this.queuedAt, pages);
    if (this.hasDurations) this.#growDurations(pages);
  }

  #growDurations(pages: number): void {
    this.durationMs = grownColumn(this.durationMs, pages);
    this.expiresAt = grownColumn(this.expiresAt, pages);
  }

  #setRecords(records: Int32Array): void {
    this.#records = records;
    let field = 0;
    const next = () => records.subarray(field++);
    this.block = next();
    this.lifecycle = next();
    this.tier = next();
    this.queued = next();
    this.holds = next();
    this.locks = next();
    this.pins = next();
    this.slot = next();
    this.nextInBlock = next();
    this.listInQueue = next();
    this.nextInQueue = next();
    this.previousInQueue = next();
    this.priority = next();
    this.reuses = next();
    this.use = next();
    this.coverage = next();
  }
}

/** The place of a page among all pages, from 0 on. */
export function rowOf(page: PageId): number {
  return page >> LOG_FIELDS;
}

/** The page at a place. */
export function pageAt(row: number): PageId {
  return row * PAGE_FIELDS;
}
