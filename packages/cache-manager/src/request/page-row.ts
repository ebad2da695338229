import { grownColumn, grownRequestLength, NONE } from '../columns.ts';
import type { PageId } from '../page/page-table.ts';

/** What one beam of a request has of one group: pages and shown slots by block ordinal (attention), or its page of state (SSM). */
export class PageRow {
  /** SSM: the snapshot claimed at creation, then the beam's own state. */
  statePage: PageId = NONE;
  #pages = new Int32Array(16).fill(NONE);
  #indices = new Int32Array(16).fill(NONE);
  #view = new Int32Array(0);

  page(ordinal: number): PageId {
    return ordinal < this.#pages.length ? this.#pages[ordinal] : NONE;
  }

  setPage(ordinal: number, page: PageId): void {
    this.reserve(ordinal + 1);
    this.#pages[ordinal] = page;
  }

  /** Names a page and shows a slot for a block that there is room for. */
  put(ordinal: number, page: PageId, slot: number): void {
    this.#pages[ordinal] = page;
    this.#indices[ordinal] = slot;
  }

  index(ordinal: number): number {
    return this.#indices[ordinal];
  }

  showIndex(ordinal: number, slot: number): void {
    this.#indices[ordinal] = slot;
  }

  /** Makes the tables long enough for so many blocks; if that takes new tables, for so many as are expected. Changes nothing that anybody sees. */
  reserve(numBlocks: number, expected = 0): void {
    if (numBlocks <= this.#pages.length) return;
    const length = grownRequestLength(this.#pages.length, numBlocks, expected);
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

  hideAll(): void {
    this.#indices.fill(NONE);
  }
}
