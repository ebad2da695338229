/** What every call of a store takes. */
export interface TierStoreOptions {
  /** Aborted: the call settles as soon as it can, with an error. */
  signal?: AbortSignal;
}

/**
 * The port of the disk tier: bytes by key, outside this process's memory. A file system, OPFS, or a map in a test.
 *
 * A store belongs to one manager, which removes what it finds there at the beginning: nothing of a disk tier outlives its
 * manager. Keys are short names of `a-z`, `0-9` and `-`, of which there are no more than the tier has slots; a value is one
 * page. The manager never runs two calls on one key at the same time, and verifies what comes back: a store need not.
 */
export interface TierStore {
  /** Stores `bytes` under a key, in place of what is there. They belong to the call until it settles. */
  put(key: string, bytes: Uint8Array, options?: TierStoreOptions): Promise<void>;
  /** What `put` stored last; undefined when there is nothing. The caller owns the result. */
  get(key: string, options?: TierStoreOptions): Promise<Uint8Array | undefined>;
  /** Forgets a key, if it is there. */
  delete(key: string, options?: TierStoreOptions): Promise<void>;
  /** All keys. */
  list(options?: TierStoreOptions): Promise<readonly string[]>;
  /** Gives everything back, with all that is stored. Called by whoever made the store, after the manager's `close`. */
  close(): Promise<void>;
}
