import type { CallOptions, Plugin } from '../plugin.ts';
import type { PageKey } from './page-key.ts';

/** What of the optional parts a store does. */
export interface PageStoreSupports {
  /** It has `list`. */
  readonly list: boolean;
  /** `ttlMs` of an entry counts. Elsewhere it is ignored: a page stays as long as the store likes. */
  readonly ttl: boolean;
  /** It holds no more than `quotaBytes` of its statistics; without, it holds what it is given. */
  readonly quota: boolean;
  /** What is stored is there again when the store is opened anew, after `close` or after the end of the process. */
  readonly persistent: boolean;
  /** Several open stores, also of other processes, may see the same pages. */
  readonly shared: boolean;
}

/** What a store takes at a time. Stays the same for the life of a store. */
export interface PageStoreLimits {
  /** Entries of one call, at least 1. */
  readonly maxBatch: number;
  /** Bytes of one page, at least 1. */
  readonly maxPageBytes: number;
}

/** A page to be stored. */
export interface PageEntry extends PageKey {
  /** The page. Belongs to the call until it settles; the store keeps a copy. */
  readonly bytes: Uint8Array;
  /** Milliseconds after which the page is not given out any more, above 0. Left out: no such time. */
  readonly ttlMs?: number;
}

/**
 * What became of an entry: `stored`; `exists`, because a page of this key was there and stays; or `refused`, because there is no room
 * now (`full`), or never will be (`too-large`).
 */
export type PutOutcome =
  | { readonly status: 'stored' }
  | { readonly status: 'exists' }
  | { readonly status: 'refused'; readonly reason: 'full' | 'too-large' };

export interface ListOptions extends CallOptions {
  /** Where the last answer ended. Left out: from the beginning. */
  readonly cursor?: string;
}

/** A piece of the list of all pages. */
export interface PageList {
  /** At most `maxBatch` keys. Affinities are there where the store knows them. */
  readonly keys: readonly PageKey[];
  /** For the next piece; null at the end. */
  readonly cursor: string | null;
}

/** Counts since the store was opened, as this process sees it. */
export interface PageStoreStatistics {
  /** Pages that `get` gave out, and those it did not have. */
  readonly hits: number;
  readonly misses: number;
  /** Pages that were found damaged; each is a miss, too. */
  readonly damaged: number;
  readonly stored: number;
  readonly refused: number;
  /** Bytes of pages given out and stored, without what the store adds to them. */
  readonly bytesRead: number;
  readonly bytesWritten: number;
  /** Bytes that the store takes up, with all it adds; null where it cannot know. */
  readonly usedBytes: number | null;
  /** Bytes that it may take up; null where nothing limits it. */
  readonly quotaBytes: number | null;
}

/**
 * Pages by key, outside of the process: a folder, a browser's private files, a database.
 *
 * A page never changes: its key says what is in it, so whoever stores first wins, and nobody has to ask who was later. What comes
 * back is verified: `get` answers with the bytes that were stored, or null, and never with others, whatever happened to the medium
 * or to a process in the middle of a `put`. `sealPage` and `openSealedPage` do that for stores which have nothing of their own.
 *
 * Answers are in the order of what was asked, one for each. A call rejects only when the store cannot be used: the medium failed,
 * `close` was called, or the signal was aborted. Calls may overlap in any number. Keys are valid, of one batch they are distinct, and
 * no batch is longer than `limits.maxBatch`: `checkedPageStore` sees to that, above all stores.
 */
export interface PageStore extends Plugin<PageStoreSupports> {
  readonly limits: PageStoreLimits;
  /**
   * False in a store that gives numbers of some pages back only within a bound that it states, such as one that keeps them in 8 bits. Its pages
   * have names of their own on the medium, where no exact store finds them. Left out: true.
   */
  readonly exact?: boolean;
  /** Whether pages are there. Need not look at the bytes, so a damaged page may be told once. */
  has(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]>;
  /** The pages, null for what is missing or damaged. The caller owns the bytes. What was found damaged may be stored again. */
  get(keys: readonly PageKey[], options?: CallOptions): Promise<readonly (Uint8Array | null)[]>;
  /**
   * Stores pages. An entry that was answered `stored` is seen by every `get` from then on, whole; one that was not is not seen in part.
   * An aborted call may have stored some.
   */
  put(entries: readonly PageEntry[], options?: CallOptions): Promise<readonly PutOutcome[]>;
  /** Forgets pages. Answers which were there. */
  delete(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]>;
  /** All pages, piece by piece, in any order; there where `supports.list` says so. What comes or goes meanwhile may be missing. */
  list?(options?: ListOptions): Promise<PageList>;
  statistics(): PageStoreStatistics;
  /** Lets go of the medium, once the calls under way have settled. Every later call but `statistics` and `close` rejects with `plugin-closed`. */
  close(): Promise<void>;
}
