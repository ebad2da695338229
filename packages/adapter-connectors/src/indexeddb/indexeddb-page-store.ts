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
import { entryPieces } from '../entry-pieces.ts';
import { ConnectorError } from '../errors.ts';
import { isNoRoom } from '../no-room.ts';
import { FLOAT_STEP_MS, UseTimes } from '../page-index.ts';
import { PageCounts } from '../remote/page-counts.ts';
import { untilAborted } from '../until-aborted.ts';
import {
  evictTo,
  forgetUsedBytes,
  type PageChanges,
  PageDatabase,
  removePage,
  setUsedBytes,
  usedBytesOf,
} from './page-database.ts';

export interface IndexedDbPageStoreOptions {
  /** Name of the database. Default `bufferwise-pages`. */
  readonly database?: string;
  /** Bytes that pages may take up, without what the database adds to them. Default 1 GiB. The least recently used pages go first. */
  readonly quotaBytes?: number;
}

const DEFAULT_QUOTA_BYTES = 1 << 30;

/** What a page counts besides its bytes and its key. */
const NOTE_BYTES = 64;

/** Bytes of pages in one transaction, unless one page has more. */
const PIECE_BYTES = 8 << 20;

/** After so many milliseconds without a note in the database, the uses of pages are noted there. */
const NOTE_EVERY_MS = 60_000;

/** Of the bytes that are used when the browser has no room, so much may stay. */
const KEPT_SHARE = 0.8;

/**
 * Pages in IndexedDB, for browsers that have nothing better: any number of tabs and workers may have the same ones at the same time.
 *
 * A page and what it takes up are changed in one transaction, so the quota holds whoever stores. Pages are sealed: what comes back
 * otherwise is a miss, and goes. What the browser has no room for is refused; old pages have made room before that.
 */
export class IndexedDbPageStore implements PageStore {
  readonly specVersion = 'v1';
  readonly name = 'IndexedDB page store';
  readonly supports = { list: true, ttl: false, quota: true, persistent: true, shared: true } as const;
  readonly limits = { maxBatch: 64, maxPageBytes: 1 << 24 } as const;
  readonly #gate = new CallGate(this.name);
  readonly #counts = new PageCounts();
  readonly #times = new UseTimes(Date.now, FLOAT_STEP_MS);
  readonly #database: PageDatabase;
  readonly #quotaBytes: number;
  /** When pages were used, as far as it is not in the database yet. */
  readonly #unnoted = new Map<string, number>();
  #notedAt = Date.now();
  #usedBytes = 0;
  /** False once pages have made room for the browser, and that was no use. */
  #mayShrink = true;

  private constructor(database: PageDatabase, quotaBytes: number) {
    this.#database = database;
    this.#quotaBytes = quotaBytes;
  }

  /** Rejects with {ConnectorError} `no-indexeddb` where there is none, or the browser does not let it be used, and `invalid-option`. */
  static async open(options: IndexedDbPageStoreOptions = {}): Promise<IndexedDbPageStore> {
    const { database = 'bufferwise-pages', quotaBytes = DEFAULT_QUOTA_BYTES } = options;
    if (!(Number.isFinite(quotaBytes) && quotaBytes > 0))
      throw new ConnectorError(
        'invalid-option',
        `IndexedDB page store: quotaBytes is ${quotaBytes}; pass a number above 0, or leave it out`,
      );
    const store = new IndexedDbPageStore(new PageDatabase(database), quotaBytes);
    await store.#change(async (changes) => evictTo(changes, await usedBytesOf(changes), quotaBytes));
    return store;
  }

  has(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#call(options, async () => {
      const { store } = (await this.#database.connection()).transaction('notes');
      return Promise.all(keys.map(async ({ key }) => (await store.getKey(key)) !== undefined));
    });
  }

  get(keys: readonly PageKey[], options?: CallOptions): Promise<readonly (Uint8Array | null)[]> {
    return this.#call(options, async () => {
      const { store } = (await this.#database.connection()).transaction('pages');
      const found = await Promise.all(keys.map(({ key }) => store.get(key)));
      const pages = await Promise.all(keys.map(({ key }, i) => this.#given(key, found[i])));
      if (this.#unnoted.size > 0 && Date.now() - this.#notedAt >= NOTE_EVERY_MS) await this.#noteUses();
      return pages;
    });
  }

  put(entries: readonly PageEntry[], options?: CallOptions): Promise<readonly PutOutcome[]> {
    return this.#call(options, async (signal) => {
      entries.forEach(checkPageKey);
      const outcomes: PutOutcome[] = [];
      for (const piece of entryPieces(entries, PIECE_BYTES)) {
        signal?.throwIfAborted();
        outcomes.push(...(await this.#putPiece(piece)));
      }
      return outcomes;
    });
  }

  delete(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#call(options, async () => {
      const there: boolean[] = [];
      await this.#change(async (changes) => {
        let used = await usedBytesOf(changes);
        for (const { key } of keys) {
          const bytes = await removePage(changes, key);
          there.push(bytes > 0);
          used -= bytes;
        }
        return used;
      });
      return there;
    });
  }

  list(options?: ListOptions): Promise<PageList> {
    return this.#call(options, async () => {
      const { maxBatch } = this.limits;
      const after = options?.cursor === undefined ? undefined : IDBKeyRange.lowerBound(options.cursor, true);
      const keys = await (await this.#database.connection()).getAllKeys('notes', after, maxBatch + 1);
      const piece = keys.slice(0, maxBatch);
      return { keys: piece.map((key) => ({ key })), cursor: keys.length > maxBatch ? (piece.at(-1) ?? null) : null };
    });
  }

  /** `usedBytes` as the last change of this store found them: others may have changed them since. */
  statistics(): PageStoreStatistics {
    return { ...this.#counts.statistics(), usedBytes: this.#usedBytes, quotaBytes: this.#quotaBytes };
  }

  close(): Promise<void> {
    return this.#gate.close(async () => {
      try {
        if (this.#unnoted.size > 0) await this.#noteUses();
      } catch {
        // What cannot be noted only orders what goes first.
      } finally {
        await this.#database.close();
      }
    });
  }

  #call<T>(options: CallOptions | undefined, call: (signal: AbortSignal | undefined) => Promise<T>): Promise<T> {
    return this.#gate.run(options, () => untilAborted(options, call));
  }

  /** What is given out for what lies in the database, whoever put it there. */
  async #given(key: string, value: unknown): Promise<Uint8Array | null> {
    if (value === undefined) return this.#counts.miss();
    const page = openStored(key, value);
    if (page !== null) {
      this.#unnoted.set(key, this.#times.next());
      return this.#counts.hit(page);
    }
    await this.#change(async (changes) => {
      const used = await usedBytesOf(changes);
      // Somebody may have removed it meanwhile, and stored it anew.
      const now: unknown = await changes.objectStore('pages').get(key);
      return now === undefined || openStored(key, now) !== null ? used : used - (await removePage(changes, key));
    });
    return this.#counts.damaged();
  }

  async #putPiece(piece: readonly PageEntry[]): Promise<PutOutcome[]> {
    const sealed = piece.map((entry) => (this.#isTooLarge(entry) ? null : sealPage(entry.key, entry.bytes)));
    const outcomes = await this.#store(piece, sealed);
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === 'stored') this.#counts.stored(piece[i].bytes);
      else if (outcome.status === 'refused') this.#counts.refused(outcome.reason);
    }
    return outcomes;
  }

  #isTooLarge({ key, bytes }: PageEntry): boolean {
    return bytes.length > this.limits.maxPageBytes || sizeOf(key, bytes.length) > this.#quotaBytes;
  }

  async #store(piece: readonly PageEntry[], sealed: readonly (Uint8Array | null)[]): Promise<PutOutcome[]> {
    for (;;) {
      const outcomes: PutOutcome[] = [];
      try {
        await this.#change(async (changes) => {
          await this.#writeUses(changes);
          let used = await usedBytesOf(changes);
          for (const [i, { key }] of piece.entries()) {
            const page = sealed[i];
            const isThere = (await changes.objectStore('notes').getKey(key)) !== undefined;
            outcomes.push(isThere ? { status: 'exists' } : page === null ? TOO_LARGE : { status: 'stored' });
            if (isThere || page === null) continue;
            const bytes = sizeOf(key, page.length - SEAL_BYTES);
            used = (await evictTo(changes, used, this.#quotaBytes - bytes)) + bytes;
            await changes.objectStore('pages').put(page, key);
            await changes.objectStore('notes').put({ bytes, usedAt: this.#times.next() }, key);
          }
          return used;
        });
        this.#mayShrink = true;
        return outcomes;
      } catch (error) {
        if (!isNoRoom(error)) throw error;
        // The browser has less room than the quota says: old pages make room, once.
        if (!this.#mayShrink || !(await this.#shrink())) {
          return piece.map((_, i) => (sealed[i] === null ? TOO_LARGE : FULL));
        }
      }
    }
  }

  /** Removes the least recently used pages, and only removes: a browser without room refuses whatever is written with it. */
  async #shrink(): Promise<boolean> {
    this.#mayShrink = false;
    try {
      this.#usedBytes = await this.#database.change(async (changes) => {
        const used = await usedBytesOf(changes);
        await forgetUsedBytes(changes);
        return evictTo(changes, used, Math.floor(used * KEPT_SHARE));
      });
      return true;
    } catch (error) {
      if (isNoRoom(error)) return false;
      throw error;
    }
  }

  #noteUses(): Promise<void> {
    return this.#change(async (changes) => {
      await this.#writeUses(changes);
      return usedBytesOf(changes);
    });
  }

  /** Takes along what is known of uses. Should the change fail, their order is forgotten. */
  async #writeUses(changes: PageChanges): Promise<void> {
    const uses = [...this.#unnoted];
    this.#unnoted.clear();
    this.#notedAt = Date.now();
    const notes = changes.objectStore('notes');
    for (const [key, usedAt] of uses) {
      const note = await notes.get(key);
      if (note !== undefined && note.usedAt < usedAt) await notes.put({ ...note, usedAt }, key);
    }
  }

  /** A change of pages, which answers the bytes that are used then. */
  async #change(change: (changes: PageChanges) => Promise<number>): Promise<void> {
    this.#usedBytes = await this.#database.change(async (changes) => {
      const used = Math.max(0, await change(changes));
      await setUsedBytes(changes, used);
      return used;
    });
  }
}

const FULL: PutOutcome = { status: 'refused', reason: 'full' };
const TOO_LARGE: PutOutcome = { status: 'refused', reason: 'too-large' };

function sizeOf(key: string, pageBytes: number): number {
  return pageBytes + SEAL_BYTES + key.length + NOTE_BYTES;
}

function openStored(key: string, value: unknown): Uint8Array | null {
  return value instanceof Uint8Array ? openSealedPage(key, value) : null;
}
