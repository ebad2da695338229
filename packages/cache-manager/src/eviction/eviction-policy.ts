import type { PageId } from '../page/page-table.ts';
import type { PageUse } from './page-use.ts';

/**
 * Decides which of the pages that nobody holds leaves first: one policy serves one pool group of one tier.
 *
 * The manager pushes a page when the last holder lets go of it, and removes it when somebody holds it again or when it has left
 * the tree. Every page is in the queue at most once. All calls come from within the manager: they must neither throw nor call
 * it. One that throws, miscounts, or names a page that is not in its queue is asked no more: pages go in the order in which they
 * came then, and every later call that wants room throws an `InvariantError` that says what was wrong. Priority is the caller's word: a policy that returns a page while one of lower priority could go breaks it.
 */
export interface EvictionPolicy {
  /** Pages in the queue. */
  readonly count: number;
  push(page: PageId): void;
  remove(page: PageId): void;
  /** The page to evict next; -1 when the queue is empty. Asking changes nothing that the next answer depends on. */
  first(): PageId;
  /** Every page of the queue once, in the order in which they would be evicted as far as that is known. For checks and tools. */
  [Symbol.iterator](): Iterator<PageId>;
  /** A request continues from the page. It is held then, so it is not in the queue. */
  reused?(page: PageId): void;
  /**
   * A request would have continued from a page of a group with that content, had there been one. Says whether there was, not long
   * ago; false where nobody remembers.
   */
  wanted?(groupId: number, contentHash: number): boolean;
  /** No block hangs from the page's block any more: evicting it takes nothing along. The page may be held, and so not in the queue. */
  becameLeaf?(page: PageId): void;
}

/** Makes the policy of one pool group, when the manager is made. */
export type EvictionPolicyFactory = (pages: EvictablePages) => EvictionPolicy;

/** What a policy may ask about pages. Answers of a page in the queue are those of the moment; every one costs O(1). */
export interface EvictablePages {
  /** Slots of the pool group: as many pages at most are in the queue. Changes when the tier is resized. */
  readonly slots: number;
  /** Groups of the config; group ids run from 0. */
  readonly numGroups: number;
  /** Pages that the manager has ids for: every id is below. Grows. */
  readonly size: number;
  /** 0 … 100; lower leaves first. Does not change while the page is in the queue. */
  priorityOf(page: PageId): number;
  groupOf(page: PageId): number;
  /** Requests that have continued from the page since it was written, 255 at most. */
  reusesOf(page: PageId): number;
  /** What the last one to hold it used it for. */
  useOf(page: PageId): PageUse;
  /** Tokens from the beginning of the sequence to the end of the page's block. */
  depthOf(page: PageId): number;
  /** Tokens that a request recomputes, at least, when this page alone is missing. */
  savedTokensOf(page: PageId): number;
  /** Whether evicting the page takes that page alone, and not those of blocks behind it: so it is where pages go to a colder tier. */
  isLeaf(page: PageId): boolean;
  /** A 32-bit hash of the page's block, the path to it, and its group: equal content, equal hash. */
  contentHashOf(page: PageId): number;
}
