import type { ScratchDesc } from '@bufferwise/scratch-allocator';
import { NONE } from '../columns.ts';
import { DEFAULT_PRIORITY } from '../eviction/lru-queue.ts';
import type { PageId, PageTable } from '../page/page-table.ts';
import type { GroupRules } from './group-rules.ts';
import { PageRow } from './page-row.ts';

const NO_SLOTS = new Int32Array(0);

/**
 * What one request has of one group: pages by block ordinal (attention), or its page of state (SSM), one row for each beam.
 *
 * Every page named here is held once by this request for each row that names it; blocks before `sharedEnd` are the same in
 * every beam, and only the first row names them. A block whose page was let go, was never needed or is scratch has NONE, in
 * every beam alike. `indices` shows the slots to consumers while the request is active.
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
  /** Blocks before this have one page for all beams. 0 while there is one beam. */
  sharedEnd = 0;
  readonly #rows: PageRow[] = [new PageRow()];
  #scratchSlots: Int32Array = NO_SLOTS;

  constructor(rules: GroupRules) {
    this.rules = rules;
  }

  /** Takes over what was chosen and how far the window has come, not the pages, from a request that this one continues. */
  adoptChoices(source: GroupState): void {
    this.complete = source.complete;
    this.reused = source.reused;
    this.rebuilt = source.rebuilt;
    this.publishes = source.publishes;
    this.snapshotPriority = source.snapshotPriority;
    this.letGoEnd = source.letGoEnd;
    this.waitingBegin = source.waitingBegin;
    this.hiddenEnd = source.hiddenEnd;
  }

  get isAttention(): boolean {
    return this.rules.kind === 'attention';
  }

  /** SSM: the snapshot claimed at creation, then the request's own state, that of beam 0. */
  get statePage(): PageId {
    return this.#rows[0].statePage;
  }

  set statePage(page: PageId) {
    this.#rows[0].statePage = page;
  }

  get numBeams(): number {
    return this.#rows.length;
  }

  row(beam: number): PageRow {
    return this.#rows[beam];
  }

  /** Adds empty rows, or takes away the last ones; the pages of those were given to others before. */
  setNumBeams(count: number): void {
    while (this.#rows.length < count) this.#rows.push(new PageRow());
    this.#rows.length = count;
  }

  /** The page of a block, NONE where there is none. */
  page(ordinal: number, beam = 0): PageId {
    return this.#rows[ordinal < this.sharedEnd ? 0 : beam].page(ordinal);
  }

  setPage(ordinal: number, page: PageId, beam = 0): void {
    this.#rows[beam].setPage(ordinal, page);
  }

  /** Shows a slot for a block in every beam. */
  showIndex(ordinal: number, slot: number): void {
    for (const row of this.#rows) row.showIndex(ordinal, slot);
  }

  /** Makes the tables long enough for so many blocks; if that takes new tables, for so many as are expected. Changes nothing that anybody sees. */
  reserve(numBlocks: number, expected = 0): void {
    for (const row of this.#rows) row.reserve(numBlocks, expected);
  }

  /** Base page indices, one a block: a view that stays live until the number of blocks changes. */
  indices(numBlocks: number, beam = 0): Int32Array {
    return this.#rows[beam].indices(numBlocks);
  }

  /** Shows the slots of the pages that later tokens read, given the history; the others read -1. */
  showPages(pages: PageTable, numBlocks: number, historyLength: number): void {
    const sinkEnd = this.rules.staleBegin(historyLength);
    const windowBegin = this.rules.staleEnd(historyLength);
    for (let beam = 0; beam < this.#rows.length; beam++) {
      const indices = this.indices(numBlocks, beam);
      for (let ordinal = 0; ordinal < numBlocks; ordinal++) {
        const page = this.page(ordinal, beam);
        const isShown = page !== NONE && (ordinal < sinkEnd || ordinal >= windowBegin);
        indices[ordinal] = isShown ? pages.slot[page] : NONE;
      }
    }
  }

  hidePages(): void {
    for (const row of this.#rows) row.hideAll();
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
