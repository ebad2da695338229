import type { ScratchDesc } from '@bufferwise/scratch-allocator';
import { grownColumn, NONE } from '../columns.ts';
import { DEFAULT_PRIORITY } from '../eviction/lru-queue.ts';
import type { PageId, PageTable } from '../page/page-table.ts';
import type { GroupRules } from './group-rules.ts';

const NO_SLOTS = new Int32Array(0);

/**
 * What one request has of one group: pages by block ordinal (attention), or its one page of state (SSM).
 *
 * Every page named here is held once by this request. A block whose page was let go, was never needed or is scratch has
 * NONE. `indices` shows the slots to consumers while the request is active.
 */
export class GroupState {
  readonly rules: GroupRules;
  /** Complete at the match: its pages were claimed at creation. */
  complete = false;
  /** Whether the pages of the match are used: required groups, and optional ones that were selected. */
  reused = false;
  /** Whether the caller promised to recompute the matched history. */
  rebuilt = false;
  /** Whether pages may be published: not private, and no forgotten work in them. */
  publishes = false;
  /** SSM: the snapshot claimed at creation, then the request's own state. */
  statePage: PageId = NONE;
  /** SSM: eviction priority of a snapshot at the committed count. */
  snapshotPriority = DEFAULT_PRIORITY;
  /** SSM: what the caller answered for the commit under way. Asked before it changes anything, as the callback may throw. */
  askedPriority = DEFAULT_PRIORITY;
  /** Blocks before this, from the sinks on, are of no use to later tokens: their pages are gone, or wait to be published. */
  letGoEnd = 0;
  /** The first of them that may wait; `letGoEnd` when none does. */
  waitingBegin = 0;
  /** Blocks before this, from the sinks on, read -1: no later token needs them. At least `letGoEnd`. */
  hiddenEnd = 0;
  scratchBegin = 0;
  scratchEnd = 0;
  #pages = new Int32Array(16).fill(NONE);
  #indices = new Int32Array(16).fill(NONE);
  #view = new Int32Array(0);
  #scratchSlots: Int32Array = NO_SLOTS;

  constructor(rules: GroupRules) {
    this.rules = rules;
  }

  get isAttention(): boolean {
    return this.rules.kind === 'attention';
  }

  /** The page of a block, NONE where there is none. */
  page(ordinal: number): PageId {
    return ordinal < this.#pages.length ? this.#pages[ordinal] : NONE;
  }

  setPage(ordinal: number, page: PageId): void {
    this.reserve(ordinal + 1);
    this.#pages[ordinal] = page;
  }

  showIndex(ordinal: number, slot: number): void {
    this.#indices[ordinal] = slot;
  }

  /** Makes the tables long enough for so many blocks. Changes nothing that anybody sees. */
  reserve(numBlocks: number): void {
    if (numBlocks <= this.#pages.length) return;
    const length = Math.max(this.#pages.length * 2, numBlocks);
    const pages = grownColumn(this.#pages, length, NONE);
    this.#indices = grownColumn(this.#indices, length, NONE);
    this.#pages = pages;
  }

  /** Base page indices, one a block: a view that stays live until the number of blocks changes. */
  indices(numBlocks: number): Int32Array {
    this.reserve(numBlocks);
    if (this.#view.length !== numBlocks || this.#view.buffer !== this.#indices.buffer)
      this.#view = this.#indices.subarray(0, numBlocks);
    return this.#view;
  }

  /** Shows the slots of the pages that later tokens read, given the history; the others read -1. */
  showPages(pages: PageTable, numBlocks: number, historyLength: number): void {
    const indices = this.indices(numBlocks);
    for (let ordinal = 0; ordinal < numBlocks; ordinal++) {
      const page = this.#pages[ordinal];
      indices[ordinal] = page !== NONE && this.rules.isLive(ordinal, historyLength) ? pages.slot[page] : NONE;
    }
  }

  hidePages(): void {
    this.#indices.fill(NONE);
  }

  get scratchSlots(): Int32Array {
    return this.#scratchSlots;
  }

  setScratch(begin: number, end: number, slots: Int32Array): void {
    this.scratchBegin = begin;
    this.scratchEnd = end;
    this.#scratchSlots = slots;
  }

  /** The scratch of the present step; null when there is none. */
  get scratch(): ScratchDesc | null {
    if (this.scratchBegin === this.scratchEnd) return null;
    return { range: { begin: this.scratchBegin, end: this.scratchEnd }, slotIds: this.#scratchSlots };
  }
}
