import { CallGate } from '../call-gate.ts';
import type { PageKey } from '../page-store/page-key.ts';
import type { ListOptions, PageEntry, PageList, PageStore, PageStoreStatistics, PutOutcome } from '../page-store/page-store.ts';
import { openSealedPage, SEAL_BYTES, sealPage } from '../page-store/sealed-page.ts';
import type { CallOptions } from '../plugin.ts';

/** A page on the medium. */
export interface StoredPage {
  readonly affinity: string | undefined;
  /** As `sealPage` made it. */
  sealed: Uint8Array;
  /** From this time on the page is none; infinite without one. */
  readonly expires: number;
}

/** The medium of `MemoryPageStore`: what outlives a store, and what several stores share. Sealed pages by key. */
export class MemoryPages {
  readonly byKey = new Map<string, StoredPage>();
  /** Bytes of all sealed pages. */
  usedBytes = 0;
}

export interface MemoryPageStoreOptions {
  /** What it keeps its pages in. Default: its own. */
  readonly pages?: MemoryPages;
  /** Bytes that sealed pages may take up. Default: no limit. */
  readonly quotaBytes?: number;
  /** The time in milliseconds, never falling. Default: `Date.now`. */
  readonly now?: () => number;
}

/** Pages in a map, sealed as on a disk: for tests, and the reference for all other stores. */
export class MemoryPageStore implements PageStore {
  readonly specVersion = 'v1';
  readonly name = 'memory page store';
  readonly supports = { list: true, ttl: true, quota: true, persistent: true, shared: true } as const;
  readonly limits = { maxBatch: 64, maxPageBytes: 1 << 24 } as const;
  readonly #gate = new CallGate(this.name);
  readonly #pages: MemoryPages;
  readonly #quotaBytes: number;
  readonly #now: () => number;
  readonly #counts = { hits: 0, misses: 0, damaged: 0, stored: 0, refused: 0, bytesRead: 0, bytesWritten: 0 };

  constructor({ pages = new MemoryPages(), quotaBytes = Number.POSITIVE_INFINITY, now = Date.now }: MemoryPageStoreOptions = {}) {
    this.#pages = pages;
    this.#quotaBytes = quotaBytes;
    this.#now = now;
  }

  has(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#gate.run(options, () => keys.map(({ key }) => this.#page(key) !== undefined));
  }

  get(keys: readonly PageKey[], options?: CallOptions): Promise<readonly (Uint8Array | null)[]> {
    return this.#gate.run(options, () => keys.map(({ key }) => this.#read(key)));
  }

  put(entries: readonly PageEntry[], options?: CallOptions): Promise<readonly PutOutcome[]> {
    return this.#gate.run(options, () => entries.map((entry) => this.#write(entry)));
  }

  delete(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#gate.run(options, () => keys.map(({ key }) => this.#page(key) !== undefined && this.#remove(key)));
  }

  list(options?: ListOptions): Promise<PageList> {
    return this.#gate.run(options, () => {
      const keys = [...this.#pages.byKey.keys()].sort();
      const begin = options?.cursor === undefined ? 0 : keys.findIndex((key) => key > (options.cursor as string));
      const piece = begin < 0 ? [] : keys.slice(begin, begin + this.limits.maxBatch);
      const last = piece.at(-1);
      return {
        keys: piece.filter((key) => this.#page(key)).map((key) => ({ key, affinity: this.#page(key)?.affinity })),
        cursor: last === undefined || last === keys.at(-1) ? null : last,
      };
    });
  }

  statistics(): PageStoreStatistics {
    const quotaBytes = Number.isFinite(this.#quotaBytes) ? this.#quotaBytes : null;
    return { ...this.#counts, usedBytes: this.#pages.usedBytes, quotaBytes };
  }

  close(): Promise<void> {
    return this.#gate.close();
  }

  /** The page of a key, unless its time has come. */
  #page(key: string): StoredPage | undefined {
    const page = this.#pages.byKey.get(key);
    if (page === undefined || page.expires > this.#now()) return page;
    this.#remove(key);
    return undefined;
  }

  #read(key: string): Uint8Array | null {
    const page = this.#page(key);
    const bytes = page === undefined ? null : openSealedPage(key, page.sealed);
    if (bytes === null) {
      this.#counts.misses++;
      if (page !== undefined) {
        this.#counts.damaged++;
        this.#remove(key);
      }
      return null;
    }
    this.#counts.hits++;
    this.#counts.bytesRead += bytes.length;
    return bytes.slice();
  }

  #write({ key, affinity, bytes, ttlMs = Number.POSITIVE_INFINITY }: PageEntry): PutOutcome {
    const old = this.#page(key);
    if (old !== undefined && openSealedPage(key, old.sealed) !== null) return { status: 'exists' };
    if (old !== undefined) this.#remove(key);
    const { maxPageBytes } = this.limits;
    const size = bytes.length + SEAL_BYTES;
    if (bytes.length > maxPageBytes || size > this.#quotaBytes) return this.#refused('too-large');
    if (this.#pages.usedBytes + size > this.#quotaBytes) this.#removeExpired();
    if (this.#pages.usedBytes + size > this.#quotaBytes) return this.#refused('full');
    this.#pages.byKey.set(key, { affinity, sealed: sealPage(key, bytes), expires: this.#now() + ttlMs });
    this.#pages.usedBytes += size;
    this.#counts.stored++;
    this.#counts.bytesWritten += bytes.length;
    return { status: 'stored' };
  }

  #refused(reason: 'full' | 'too-large'): PutOutcome {
    this.#counts.refused++;
    return { status: 'refused', reason };
  }

  #remove(key: string): boolean {
    const page = this.#pages.byKey.get(key);
    if (page === undefined) return false;
    this.#pages.usedBytes -= page.sealed.length;
    return this.#pages.byKey.delete(key);
  }

  #removeExpired(): void {
    for (const key of [...this.#pages.byKey.keys()]) this.#page(key);
  }
}
