import type { PageEntry, PageKey, PageList, PageStoreStatistics, PutOutcome } from '@bufferwise/adapter-kit';
import type { OpfsPagesOptions } from './direct-opfs-page-store.ts';

/** Bytes of pages in one message, unless one page has more: a call is sent in as many as it takes. */
export const MESSAGE_BYTES = 8 << 20;

/** What a page asks a worker for; a port comes with it, for all that follows. */
export interface OpenMessage {
  readonly bufferwise: 'open-page-store';
  readonly options: OpfsPagesOptions;
  /** A lock that the worker holds as long as it lives and the store is open: whoever waits for it learns of the end. */
  readonly aliveLock: string;
}

/** What a store in a worker is asked for, and what it answers. */
export interface Calls {
  readonly has: { readonly ask: { readonly keys: readonly PageKey[] }; readonly answer: readonly boolean[] };
  /** Of the first keys, as many as fit into a message. */
  readonly get: { readonly ask: { readonly keys: readonly PageKey[] }; readonly answer: readonly (Uint8Array | null)[] };
  readonly put: { readonly ask: { readonly entries: readonly PageEntry[] }; readonly answer: readonly PutOutcome[] };
  readonly delete: { readonly ask: { readonly keys: readonly PageKey[] }; readonly answer: readonly boolean[] };
  readonly list: { readonly ask: { readonly cursor?: string }; readonly answer: PageList };
  readonly close: { readonly ask: object; readonly answer: null };
}

export type CallName = keyof Calls;

export type Ask = { [Name in CallName]: Calls[Name]['ask'] & { readonly call: Name; readonly id: number } }[CallName];

/** An error in a form that goes through a port whole. */
export interface SentError {
  /** Of a `BufferwiseError`. */
  readonly code?: string;
  readonly message: string;
  /** What was thrown, without its class where that is one of ours. */
  readonly error: unknown;
}

/** What a worker says. `alive`: it holds its lock, and opens the store now. */
export type Answer =
  | { readonly kind: 'alive' }
  | { readonly kind: 'opened'; readonly statistics: PageStoreStatistics }
  | { readonly kind: 'not-opened'; readonly error: SentError }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown; readonly statistics: PageStoreStatistics }
  | { readonly kind: 'failed'; readonly id: number; readonly error: SentError; readonly statistics: PageStoreStatistics };
