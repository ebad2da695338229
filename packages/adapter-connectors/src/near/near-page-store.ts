import {
  CallGate,
  type CallOptions,
  type ListOptions,
  type PageEntry,
  type PageKey,
  type PageList,
  type PageStore,
  type PageStoreStatistics,
  type PutOutcome,
} from '@bufferwise/adapter-kit';
import { ConnectorError } from '../errors.ts';
import { type IndexedPage, PageIndex } from '../page-index.ts';
import { PageCounts } from '../remote/page-counts.ts';

/** A page in memory. */
interface NearPage extends IndexedPage {
  readonly page: Uint8Array;
  readonly affinity: string | undefined;
}

export interface NearPageStoreOptions {
  /** Bytes of pages. The least recently used ones go first. */
  readonly quotaBytes: number;
}

/**
 * The pages that were used last, in the memory of this process: what goes before a slow store in `composedStore`. It makes room by itself, so
 * what is asked for often stays near, and ends with the process. No seals: nobody else writes this memory.
 */
export class NearPageStore implements PageStore {
  readonly specVersion = 'v1';
  readonly name = 'near page store';
  readonly supports = { list: true, ttl: false, quota: true, persistent: false, shared: false } as const;
  readonly limits = { maxBatch: 1024, maxPageBytes: 1 << 26 } as const;
  readonly #gate = new CallGate(this.name);
  readonly #counts = new PageCounts();
  readonly #index: PageIndex<NearPage>;
  #uses = 0;

  /** @throws {ConnectorError} `invalid-option` on a quota that is none */
  constructor({ quotaBytes }: NearPageStoreOptions) {
    if (!(quotaBytes > 0 && Number.isFinite(quotaBytes)))
      throw new ConnectorError('invalid-option', `near page store: quotaBytes is ${quotaBytes}; pass a number above 0`);
    this.#index = new PageIndex(quotaBytes);
  }

  has(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#gate.run(options, () => keys.map(({ key }) => this.#index.get(key) !== undefined));
  }

  get(keys: readonly PageKey[], options?: CallOptions): Promise<readonly (Uint8Array | null)[]> {
    return this.#gate.run(options, () =>
      keys.map(({ key }) => {
        const found = this.#index.get(key);
        if (found === undefined) return this.#counts.miss();
        this.#index.touch(key, found, ++this.#uses);
        return this.#counts.hit(found.page.slice());
      }),
    );
  }

  put(entries: readonly PageEntry[], options?: CallOptions): Promise<readonly PutOutcome[]> {
    return this.#gate.run(options, () => entries.map((entry) => this.#write(entry)));
  }

  delete(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#gate.run(options, () =>
      keys.map(({ key }) => {
        const found = this.#index.get(key);
        return found !== undefined && this.#index.remove(key, found);
      }),
    );
  }

  list(options?: ListOptions): Promise<PageList> {
    return this.#gate.run(options, () => {
      const { keys, cursor } = this.#index.piece(options?.cursor, this.limits.maxBatch);
      return { keys: keys.map(({ key }) => ({ key, affinity: this.#index.get(key)?.affinity })), cursor };
    });
  }

  statistics(): PageStoreStatistics {
    const { usedBytes, quotaBytes } = this.#index;
    return { ...this.#counts.statistics(), usedBytes, quotaBytes };
  }

  close(): Promise<void> {
    return this.#gate.close();
  }

  #write({ key, affinity, bytes }: PageEntry): PutOutcome {
    if (this.#index.get(key) !== undefined) return { status: 'exists' };
    if (bytes.length > this.limits.maxPageBytes || bytes.length > this.#index.quotaBytes)
      return this.#counts.refused('too-large');
    if (this.#index.reserve(bytes.length) === null) return this.#counts.refused('full');
    this.#index.release(bytes.length);
    this.#index.add(key, { bytes: bytes.length, usedAt: ++this.#uses, page: bytes.slice(), affinity });
    return this.#counts.stored(bytes);
  }
}
