import {
  CallGate,
  type CallOptions,
  type ConnectorLayout,
  type ListOptions,
  type PageEntry,
  type PageKey,
  type PageList,
  type PageStore,
  type PageStoreLimits,
  type PageStoreStatistics,
  type PageStoreSupports,
  type PutOutcome,
} from '@bufferwise/adapter-kit';
import { ConnectorError } from '../errors.ts';
import { PageCounts } from '../remote/page-counts.ts';
import { EncodedNames } from './encoded-names.ts';
import { PageCodec, type PageEncoding } from './page-codec.ts';

export interface EncodedStoreOptions extends PageEncoding {
  /** Whose pages come: what their numbers are, and how large they may be. Others are compressed, and never kept in 8 bits. */
  readonly layout?: ConnectorLayout;
}

/** Counts of pages as they are, and of what became of them. */
export interface EncodedStoreStatistics extends PageStoreStatistics {
  /** Bytes that `bytesRead` was on the medium, and `bytesWritten` is there. */
  readonly encodedBytesRead: number;
  readonly encodedBytesWritten: number;
}

/** A store whose pages are encoded in another one. */
export interface EncodedStore extends PageStore {
  /** Whether every page comes back as it was stored: false with `int8`. */
  readonly exact: boolean;
  statistics(): EncodedStoreStatistics;
}

/**
 * A store that keeps its pages encoded in another one: smaller, at the price of time. Encoded pages have names of their own there, so a
 * store without the encoding never finds them, nor the other way round; and with `int8` also those of groups that are kept exactly, since
 * what is computed behind inexact pages is inexact, too. A page that cannot be decoded is a miss, counted as damaged, and removed.
 *
 * A page larger than the quota of the other store is `too-large`, however small it would become. Closing it closes the other one.
 *
 * @throws {ConnectorError} `invalid-option` when `int8` is asked for without a layout, which says what numbers there are
 */
export function encodedStore(store: PageStore, options: EncodedStoreOptions = {}): EncodedStore {
  return store.supports.list ? new ListedStore(store, options) : new StoreOfEncoded(store, options);
}

/** The longest name, and its length. */
const NAME_BYTES = 201;

class StoreOfEncoded implements EncodedStore {
  readonly specVersion = 'v1';
  readonly name: string;
  readonly supports: PageStoreSupports;
  readonly limits: PageStoreLimits;
  readonly exact: boolean;
  protected readonly gate: CallGate;
  protected readonly store: PageStore;
  protected readonly names: EncodedNames;
  readonly #counts = new PageCounts();
  #encodedBytesRead = 0;
  #encodedBytesWritten = 0;

  constructor(store: PageStore, { layout, ...encoding }: EncodedStoreOptions) {
    const isInexact = encoding.int8 !== undefined && encoding.int8 !== false;
    if (isInexact && layout === undefined)
      throw new ConnectorError(
        'invalid-option',
        `encoded store: int8 is for numbers, and nobody said where they lie; pass \`layout\`, made by connectorLayout with what its numbers are`,
      );
    this.store = store;
    this.name = `encoded ${store.name}`;
    this.supports = store.supports;
    const { maxBatch, maxPageBytes } = store.limits;
    this.limits = { maxBatch, maxPageBytes: Math.max(1, maxPageBytes - (PageCodec.maxBytes(0) + NAME_BYTES)) };
    this.exact = !isInexact && store.exact !== false;
    this.names = new EncodedNames(layout, encoding);
    this.gate = new CallGate(this.name);
  }

  has(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.gate.run(options, () =>
      this.store.has(
        keys.map((key) => this.names.encoded(key)),
        options,
      ),
    );
  }

  get(keys: readonly PageKey[], options?: CallOptions): Promise<readonly (Uint8Array | null)[]> {
    return this.gate.run(options, async () => {
      const encoded = keys.map((key) => this.names.encoded(key));
      const found = await this.store.get(encoded, options);
      const pages = await Promise.all(keys.map(({ key }, i) => this.#decode(key, encoded[i].isHashed, found[i])));
      const spoilt = encoded.filter((_, i) => found[i] !== null && pages[i] === null);
      // They are misses in any case; whoever stores them anew has the first word then.
      if (spoilt.length > 0) await this.store.delete(spoilt, options).catch(() => {});
      return pages.map((page, i) => {
        if (page === null) return found[i] === null ? this.#counts.miss() : this.#counts.damaged();
        this.#encodedBytesRead += (found[i] as Uint8Array).length;
        return this.#counts.hit(page);
      });
    });
  }

  put(entries: readonly PageEntry[], options?: CallOptions): Promise<readonly PutOutcome[]> {
    return this.gate.run(options, async () => {
      const mayFit = entries.filter(({ key, bytes }) => bytes.length <= this.#mostBytes(key));
      const encoded = await Promise.all(mayFit.map((entry) => this.#encode(entry)));
      options?.signal?.throwIfAborted();
      const answers = encoded.length === 0 ? [] : await this.store.put(encoded, options);
      return entries.map((entry): PutOutcome => {
        const at = mayFit.indexOf(entry);
        const outcome: PutOutcome = at < 0 ? { status: 'refused', reason: 'too-large' } : answers[at];
        if (outcome.status === 'refused') return this.#counts.refused(outcome.reason);
        if (outcome.status === 'exists') return outcome;
        this.#encodedBytesWritten += encoded[at].bytes.length;
        return this.#counts.stored(entry.bytes);
      });
    });
  }

  delete(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.gate.run(options, () =>
      this.store.delete(
        keys.map((key) => this.names.encoded(key)),
        options,
      ),
    );
  }

  statistics(): EncodedStoreStatistics {
    const { usedBytes, quotaBytes, damaged } = this.store.statistics();
    const own = this.#counts.statistics();
    const encoded = { encodedBytesRead: this.#encodedBytesRead, encodedBytesWritten: this.#encodedBytesWritten };
    return { ...own, damaged: own.damaged + damaged, usedBytes, quotaBytes, ...encoded };
  }

  close(): Promise<void> {
    return this.gate.close(() => this.store.close());
  }

  #mostBytes(key: string): number {
    const { quotaBytes } = this.store.statistics();
    return Math.min(this.names.kindOf(key).pageBytes ?? this.limits.maxPageBytes, quotaBytes ?? Number.POSITIVE_INFINITY);
  }

  async #encode({ key, affinity, bytes, ttlMs }: PageEntry): Promise<PageEntry> {
    const { isHashed, ...name } = this.names.encoded({ key, affinity });
    const encoded = await this.names.kindOf(key).codec.encode(bytes);
    return { ...name, bytes: isHashed ? named(key, encoded) : encoded, ttlMs };
  }

  async #decode(key: string, isHashed: boolean, found: Uint8Array | null): Promise<Uint8Array | null> {
    if (found === null || (isHashed && nameOf(found) !== key)) return null;
    const { codec, pageBytes } = this.names.kindOf(key);
    return codec.decode(isHashed ? found.subarray(1 + key.length) : found, pageBytes ?? this.limits.maxPageBytes);
  }
}

class ListedStore extends StoreOfEncoded {
  /** What has another encoding, or none, is not listed. */
  list(options?: ListOptions): Promise<PageList> {
    return this.gate.run(options, async () => {
      const { keys: encoded, cursor } = (await this.store.list?.(options)) ?? { keys: [], cursor: null };
      const hashed = encoded.filter(({ key }) => this.names.isHashed(key));
      const pages = hashed.length === 0 ? [] : await this.store.get(hashed, options);
      const names = new Map(encoded.map(({ key }) => [key, this.names.decoded(key)]));
      hashed.forEach(({ key }, i) => {
        const page = pages[i];
        const name = page && nameOf(page);
        if (name && this.names.encoded({ key: name }).key === key) names.set(key, name);
      });
      const keys = encoded.flatMap(({ key, affinity }): PageKey[] => {
        const name = names.get(key);
        return name === undefined ? [] : [{ key: name, affinity }];
      });
      return { keys, cursor };
    });
  }
}

/** An encoded page behind its name, whose length comes first. */
function named(key: string, encoded: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(1 + key.length + encoded.length);
  bytes[0] = key.length;
  new TextEncoder().encodeInto(key, bytes.subarray(1));
  bytes.set(encoded, 1 + key.length);
  return bytes;
}

function nameOf(page: Uint8Array): string {
  return new TextDecoder().decode(page.subarray(1, 1 + (page[0] ?? 0)));
}
