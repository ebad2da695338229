import type { PageId } from '../page/page-table.ts';

/** Told by the tree of every page that a block begins or ceases to list, in the middle of a change: it looks and notes, no more. */
export interface PageListener {
  /** The page's block and coverage are set. */
  listed(page: PageId): void;
  /** The page's block and coverage are still set. */
  unlisted(page: PageId): void;
}
