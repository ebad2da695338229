import { mkdir } from 'node:fs/promises';
import {
  CallGate,
  type CallOptions,
  checkPageKey,
  type ListOptions,
  openSealedPage,
  type PageEntry,
  type PageKey,
  type PageList,
  type PageStore,
  type PageStoreStatistics,
  type PutOutcome,
  SEAL_BYTES,
  sealPage,
} from '@bufferwise/adapter-kit';
import { ConnectorError } from '../errors.ts';
import { type IndexedPage, PageIndex, UseTimes } from '../page-index.ts';
import { lockFolder } from './folder-lock.ts';
import { codeOf, type Fsync, PageFolder } from './page-folder.ts';

export interface FilePageStoreOptions {
  /** Bytes that files may take up, without what a file system rounds them to. Default: no limit. The least recently used pages go first. */
  readonly quotaBytes?: number;
  /** Default `never`: a process that is killed loses nothing by it, a power cut costs pages. */
  readonly fsync?: Fsync;
  /** The time in milliseconds. Default `Date.now`. */
  readonly now?: () => number;
}

/** After so many milliseconds without a note on the disk, the next use of a page is noted there. */
const NOTE_EVERY_MS = 60_000;

/** There is no room, now or for this user: an answer and no error. */
const NO_ROOM = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EPERM', 'EMFILE', 'ENFILE']);

/** No lock can be written: what is there can still be given out. */
const READ_ONLY = new Set(['EROFS', 'EACCES', 'ENOSPC', 'EDQUOT']);

/**
 * Pages in files, one a page, for Node.
 *
 * A page gets its name once it is whole, and is sealed: one that a crash, a bad disk or another program has spoilt is a miss, and goes. What
 * lies in the folder is found again at the next start, in the order of its last use; what was unfinished goes. One store has a
 * folder at a time. A full disk, or one that may only be read, refuses pages; everything else that the file system says is thrown.
 */
export class FilePageStore implements PageStore {
  readonly specVersion = 'v1';
  readonly name = 'file page store';
  readonly supports = { list: true, ttl: false, quota: true, persistent: true, shared: false } as const;
  readonly limits = { maxBatch: 64, maxPageBytes: 1 << 26 } as const;
  /** The folder of the files with pages, inside of the one that was given. */
  readonly folder: string;
  /** False on a disk that can only be read, or had no room for a lock: pages are given out, and none is taken. */
  readonly isWritable: boolean;
  readonly #gate = new CallGate(this.name);
  readonly #files: PageFolder;
  readonly #index: PageIndex;
  readonly #times: UseTimes;
  readonly #unlock: () => Promise<void>;
  /** What is written or removed under a key happens in the order of the calls. */
  readonly #turns = new Map<string, Promise<unknown>>();
  /** Pages whose last use is noted in memory only. */
  readonly #unnoted = new Map<string, IndexedPage>();
  readonly #notedAt = new WeakMap<IndexedPage, number>();
  readonly #counts = { hits: 0, misses: 0, damaged: 0, stored: 0, refused: 0, bytesRead: 0, bytesWritten: 0 };

  private constructor(folder: PageFolder, index: PageIndex, now: () => number, unlock: (() => Promise<void>) | null) {
    this.folder = folder.root;
    this.#files = folder;
    this.#index = index;
    this.#times = new UseTimes(now, 1);
    this.isWritable = unlock !== null;
    this.#unlock = unlock ?? (async () => {});
  }

  /**
   * Rejects with {ConnectorError} `store-locked` when another store has the folder, `invalid-option` on a quota that is none, and with what
   * the file system says when the folder cannot be used.
   *
   * @param folder is made where it does not exist
   */
  static async open(folder: string, options: FilePageStoreOptions = {}): Promise<FilePageStore> {
    const { quotaBytes = Number.POSITIVE_INFINITY, fsync = 'never', now = Date.now } = options;
    if (!(quotaBytes > 0))
      throw new ConnectorError(
        'invalid-option',
        `file page store: quotaBytes is ${quotaBytes}; pass a number above 0, or leave it out`,
      );
    const pages = new PageFolder(folder, fsync);
    const unlock = await takeFolder(folder, pages);
    try {
      const store = new FilePageStore(pages, new PageIndex(quotaBytes), now, unlock);
      await store.#takeStock();
      return store;
    } catch (error) {
      await unlock?.();
      throw error;
    }
  }

  has(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#gate.run(options, () => keys.map(({ key }) => this.#index.get(key) !== undefined));
  }

  get(keys: readonly PageKey[], options?: CallOptions): Promise<readonly (Uint8Array | null)[]> {
    return this.#gate.run(options, () => Promise.all(keys.map(({ key }) => this.#read(key))));
  }

  put(entries: readonly PageEntry[], options?: CallOptions): Promise<readonly PutOutcome[]> {
    return this.#gate.run(options, () => {
      entries.forEach(checkPageKey);
      return all(entries, ({ key, bytes }) => this.#inTurn(key, () => this.#write(key, bytes, options?.signal)));
    });
  }

  delete(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#gate.run(options, () => all(keys, ({ key }) => this.#inTurn(key, () => this.#forget(key))));
  }

  list(options?: ListOptions): Promise<PageList> {
    return this.#gate.run(options, () => this.#index.piece(options?.cursor, this.limits.maxBatch));
  }

  statistics(): PageStoreStatistics {
    const { usedBytes, quotaBytes } = this.#index;
    return { ...this.#counts, usedBytes, quotaBytes: Number.isFinite(quotaBytes) ? quotaBytes : null };
  }

  close(): Promise<void> {
    return this.#gate.close(async () => {
      for (const [key, page] of this.#unnoted) if (this.#index.get(key) === page) await this.#files.touch(key, page.usedAt);
      await this.#unlock();
    });
  }

  /** Finds what lies in the folder, and lets go of what is beyond the quota. */
  async #takeStock(): Promise<void> {
    const found = (await this.#files.scan()).sort((a, b) => a.usedAt - b.usedAt || (a.key < b.key ? -1 : 1));
    for (const { key, bytes, usedAt } of found) {
      this.#add(key, bytes, usedAt);
      this.#times.seen(usedAt);
    }
    if (!this.isWritable) return;
    for (const [key] of this.#index.reserve(0) ?? []) await this.#files.remove(key);
  }

  async #read(key: string): Promise<Uint8Array | null> {
    const page = this.#index.get(key);
    if (page === undefined) return this.#missed();
    const sealed = await this.#files.read(key, page.bytes).catch((error: unknown) => {
      // A place on the disk that cannot be read any more.
      if (codeOf(error) === 'EIO') return null;
      throw error;
    });
    const bytes = sealed === null ? null : openSealedPage(key, sealed);
    if (bytes !== null) {
      this.#counts.hits++;
      this.#counts.bytesRead += bytes.length;
      await this.#used(key, page);
      return bytes;
    }
    // Unless it was removed meanwhile, on purpose or for room.
    if (this.#index.get(key) === page) {
      this.#counts.damaged++;
      await this.#inTurn(key, async () => {
        if (this.#index.remove(key, page) && this.isWritable) await this.#files.remove(key).catch(() => {});
      });
    }
    return this.#missed();
  }

  async #write(key: string, bytes: Uint8Array, signal: AbortSignal | undefined): Promise<PutOutcome> {
    signal?.throwIfAborted();
    if (this.#index.get(key) !== undefined) return { status: 'exists' };
    const size = bytes.length + SEAL_BYTES;
    if (bytes.length > this.limits.maxPageBytes || size > this.#index.quotaBytes) return this.#refused('too-large');
    if (!this.isWritable) return this.#refused('full');
    const sealed = sealPage(key, bytes);
    const usedAt = this.#times.next();
    const evicted = this.#index.reserve(size);
    if (evicted === null) return this.#refused('full');
    try {
      await Promise.all(evicted.map((each) => this.#evict(...each)));
      await this.#files.publish(key, sealed, usedAt);
    } catch (error) {
      if (NO_ROOM.has(codeOf(error) ?? '')) return this.#refused('full');
      throw error;
    } finally {
      this.#index.release(size);
    }
    this.#add(key, size, usedAt);
    this.#counts.stored++;
    this.#counts.bytesWritten += bytes.length;
    return { status: 'stored' };
  }

  async #forget(key: string): Promise<boolean> {
    const page = this.#index.get(key);
    if (page === undefined) return false;
    // On a disk that can only be read, this store does not give it out any more.
    if (this.isWritable) await this.#files.remove(key);
    // Unless it had to make room meanwhile.
    return this.#index.remove(key, page);
  }

  /** Removes the file of a page that the index has forgotten. A page that was stored anew meanwhile has taken its place. */
  #evict(key: string, page: IndexedPage): Promise<void> {
    return this.#inTurn(key, async () => {
      if (this.#index.get(key) !== undefined) return;
      try {
        await this.#files.remove(key);
      } catch (error) {
        this.#index.add(key, page);
        throw error;
      }
    });
  }

  #add(key: string, bytes: number, usedAt: number): void {
    const page = { bytes, usedAt };
    this.#index.add(key, page);
    this.#notedAt.set(page, usedAt);
  }

  async #used(key: string, page: IndexedPage): Promise<void> {
    if (this.#index.get(key) !== page) return;
    this.#index.touch(key, page, this.#times.next());
    if (!this.isWritable) return;
    if (page.usedAt - (this.#notedAt.get(page) ?? 0) < NOTE_EVERY_MS) {
      this.#unnoted.set(key, page);
      return;
    }
    this.#unnoted.delete(key);
    this.#notedAt.set(page, page.usedAt);
    await this.#files.touch(key, page.usedAt);
  }

  #missed(): null {
    this.#counts.misses++;
    return null;
  }

  #refused(reason: 'full' | 'too-large'): PutOutcome {
    this.#counts.refused++;
    return { status: 'refused', reason };
  }

  #inTurn<T>(key: string, call: () => Promise<T>): Promise<T> {
    const result = (this.#turns.get(key) ?? Promise.resolve()).then(call);
    const turn = result
      .catch(() => {})
      .then(() => {
        if (this.#turns.get(key) === turn) this.#turns.delete(key);
      });
    this.#turns.set(key, turn);
    return result;
  }
}

/** What gives the folder back, or null where nothing can be written. */
async function takeFolder(folder: string, pages: PageFolder): Promise<(() => Promise<void>) | null> {
  let unlock: (() => Promise<void>) | undefined;
  try {
    await mkdir(folder, { recursive: true });
    unlock = await lockFolder(folder);
    await pages.prepare();
    return unlock;
  } catch (error) {
    await unlock?.();
    if (READ_ONLY.has(codeOf(error) ?? '')) return null;
    throw error;
  }
}

/** All answers, once all calls have settled: nothing goes on behind a call that has rejected. */
async function all<T, R>(items: readonly T[], call: (item: T) => Promise<R>): Promise<R[]> {
  const results = await Promise.allSettled(items.map(call));
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}
