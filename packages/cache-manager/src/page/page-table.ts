import { grownColumn, grownLength, NONE } from '../columns.ts';

/** Index of a page in its table. Ids are used again once the page is gone. */
export type PageId = number;

/** The duration of what holds for good. */
export const FOREVER = 0xffffffff;

const INITIAL_PAGES = 64;

/** Whether a page waits in the eviction queue of its tier, and as what. */
export const QUEUED_NOT = 0;
/** Nobody holds it: it may go to a colder tier, or vanish. */
export const QUEUED_DROPPABLE = 1;
/** Somebody holds it: it may go to a colder tier. */
export const QUEUED_HELD = 2;

/**
 * The pages as columns: which slot of which tier, how far they are good, who holds them.
 *
 * A page has a slot of its lifecycle's pool group in its tier as long as it exists. `block` is the tree block that lists it,
 * or NONE: then it belongs to the requests that hold it alone, and goes when the last of them lets go. A listed page that
 * nobody holds is droppable. `StorageManager` keeps all columns but `block`, `coverage` and `nextInBlock`, which are the tree's.
 */
export class PageTable {
  lifecycle: Uint16Array = new Uint16Array(INITIAL_PAGES);
  /** Index of the tier, 0 = device. */
  tier: Uint8Array = new Uint8Array(INITIAL_PAGES);
  slot: Int32Array = new Int32Array(INITIAL_PAGES);
  block: Int32Array = new Int32Array(INITIAL_PAGES);
  /** Attention: tokens of the block that the page is good for. SSM: the exact count of tokens inside the block, 1 … tokensPerBlock. */
  coverage: Int32Array = new Int32Array(INITIAL_PAGES);
  /** How often requests name it. */
  holds: Int32Array = new Int32Array(INITIAL_PAGES);
  /** How often active requests do: it stays on the device, in its slot. Never more than `holds`. */
  locks: Int32Array = new Int32Array(INITIAL_PAGES);
  /** How many moves under way need it where it is: it neither leaves its slot nor ends meanwhile. */
  pins: Uint8Array = new Uint8Array(INITIAL_PAGES);
  /** 1 while its bytes are still on their way to its slot. */
  landing: Uint8Array = new Uint8Array(INITIAL_PAGES);
  /** `QUEUED_NOT`, `QUEUED_DROPPABLE` or `QUEUED_HELD`. */
  queued: Uint8Array = new Uint8Array(INITIAL_PAGES);
  /** When it last came into a queue of its tier: a count of all such events. */
  queuedAt: Float64Array = new Float64Array(INITIAL_PAGES);
  priority: Uint8Array = new Uint8Array(INITIAL_PAGES);
  /** Next page of the same block and lifecycle (snapshots at other counts). */
  nextInBlock: Int32Array = new Int32Array(INITIAL_PAGES);
  /** Whether the next two columns are kept: they are as long as the others from `keepDurations` on, and empty before. */
  hasDurations = false;
  /** Milliseconds in the queue after which the priority falls back to the usual one; 0: nobody said, `FOREVER`: never. */
  durationMs: Uint32Array = new Uint32Array(0);
  /** When it does; 0 while somebody holds the page. */
  expiresAt: Float64Array = new Float64Array(0);
  /** Requests that have continued from the page, 255 at most. */
  reuses: Uint8Array = new Uint8Array(INITIAL_PAGES);
  /** What its last holder used it for (`PageUse`). */
  use: Uint8Array = new Uint8Array(INITIAL_PAGES);
  /** When it last came into the queue, by the queue's clock; 0: never. */
  stamp: Float64Array = new Float64Array(INITIAL_PAGES);
  /** The queue's list it is in, for queues of several. */
  listInQueue: Uint16Array = new Uint16Array(INITIAL_PAGES);
  nextInQueue: Int32Array = new Int32Array(INITIAL_PAGES).fill(NONE);
  previousInQueue: Int32Array = new Int32Array(INITIAL_PAGES).fill(NONE);
  /** Drop plans that name a page and were not carried out yet, for the few pages that are named. Gone with the page. */
  readonly plans = new Map<PageId, { count: number }>();
  /** Pages that there will be when all memory is used; 0 when nobody knows. Spares the last steps of growing. */
  expectedSize = 0;
  #free: number[] = [];
  #size = 0;

  /** Ids ever given out: every live page is below. */
  get size(): number {
    return this.#size;
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
    this.stamp[page] = 0;
    if (this.hasDurations) {
      this.durationMs[page] = 0;
      this.expiresAt[page] = 0;
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
    this.#growDurations(this.slot.length);
  }

  isLive(page: PageId): boolean {
    return this.slot[page] !== NONE;
  }

  #nextId(): PageId {
    if (this.#size === this.slot.length) this.#grow(grownLength(this.#size, this.#size + 1, this.expectedSize));
    return this.#size++;
  }

  #grow(pages: number): void {
    this.lifecycle = grownColumn(this.lifecycle, pages);
    this.tier = grownColumn(this.tier, pages);
    this.slot = grownColumn(this.slot, pages);
    this.block = grownColumn(this.block, pages);
    this.coverage = grownColumn(this.coverage, pages);
    this.holds = grownColumn(this.holds, pages);
    this.locks = grownColumn(this.locks, pages);
    this.pins = grownColumn(this.pins, pages);
    this.landing = grownColumn(this.landing, pages);
    this.queued = grownColumn(this.queued, pages);
    this.queuedAt = grownColumn(this.queuedAt, pages);
    this.priority = grownColumn(this.priority, pages);
    this.nextInBlock = grownColumn(this.nextInBlock, pages);
    if (this.hasDurations) this.#growDurations(pages);
    this.reuses = grownColumn(this.reuses, pages);
    this.use = grownColumn(this.use, pages);
    this.stamp = grownColumn(this.stamp, pages);
    this.listInQueue = grownColumn(this.listInQueue, pages);
    this.nextInQueue = grownColumn(this.nextInQueue, pages, NONE);
    this.previousInQueue = grownColumn(this.previousInQueue, pages, NONE);
  }

  #growDurations(pages: number): void {
    this.durationMs = grownColumn(this.durationMs, pages);
    this.expiresAt = grownColumn(this.expiresAt, pages);
  }
}
