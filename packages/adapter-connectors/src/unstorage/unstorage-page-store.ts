import {
  CallGate,
  type CallOptions,
  type ListOptions,
  openSealedPage,
  type PageEntry,
  type PageKey,
  type PageList,
  type PageStore,
  type PageStoreLimits,
  type PageStoreStatistics,
  type PageStoreSupports,
  type PutOutcome,
  SEAL_BYTES,
  sealPage,
} from '@bufferwise/adapter-kit';
import { isPageKey } from '../is-page-key.ts';
import { type CallTime, inTime } from '../remote/call-time.ts';
import { InFlight } from '../remote/in-flight.ts';
import { PageCounts } from '../remote/page-counts.ts';
import { checkCounts, StoreOptionsError } from '../remote/store-options-error.ts';
import { StoreUnavailableError } from '../remote/store-unavailable-error.ts';

/** What of a storage of `unstorage` (`createStorage({ driver })`) is used. */
export interface UnstorageLike {
  hasItem(key: string): Promise<boolean>;
  // biome-ignore lint/suspicious/noExplicitAny: the storage gives whatever type it is asked for.
  getItemRaw(key: string): Promise<any>;
  setItemRaw(key: string, value: unknown): Promise<void>;
  removeItem(key: string): Promise<void>;
  getKeys(base?: string): Promise<string[]>;
}

export interface UnstoragePageStoreOptions {
  /** What the pages are kept in. Stays open when the store closes: its owner disposes of it. */
  readonly storage: UnstorageLike;
  /** What the keys of all its pages begin with: letters, digits, `-`, `_`, and `:` between them. Default `bufferwise`. */
  readonly base?: string;
  /** Whether the driver keeps what it is given beyond the end of the process. Default false. */
  readonly persistent?: boolean;
  /** Entries of one call. Default 64. */
  readonly maxBatch?: number;
  /** Bytes of one page. Default 16 MiB. */
  readonly maxPageBytes?: number;
  /** Milliseconds after which a call answers with what it has. Default 5,000. */
  readonly timeoutMs?: number;
  /** Items under way at the same time. Default 16. */
  readonly maxItemsInFlight?: number;
  /** Bytes of pages of those. Reads count with the largest page that was seen so far. Default 64 MiB. */
  readonly maxBytesInFlight?: number;
}

/** Counts of `UnstoragePageStore`. */
export interface UnstoragePageStoreStatistics extends PageStoreStatistics {
  /** Items that were not done in the time of their call. */
  readonly timeouts: number;
  /** Items at which the driver failed. */
  readonly driverErrors: number;
}

/** No driver minds a name with an ending; some mind one that ends in a dot. */
const ENDING = '.page';

/** What a read counts before any page was seen. */
const FIRST_READ_BYTES = 256 * 1024;

/**
 * Pages in whatever `unstorage` has a driver for, as sealed raw items.
 *
 * It is as good as what all drivers have in common, so use a store of its own kind where there is one:
 *
 * - No driver stores only what is not there. Of two writers in this process the first wins; of two processes the last, so it is not `shared`.
 * - An item is read whole before its length is known.
 * - Nothing under way can be taken back: after `timeoutMs` or an aborted signal the driver may go on for a while. Two calls for one page
 *   go one after the other, so the second of them may run out of time, too.
 * - There is no time to live and no quota; a driver that has its own may use it. `list` asks the driver for all keys each time.
 * - A driver without raw items keeps them in base64, a third larger.
 *
 * A driver that fails or is slow is no exception: its pages are misses and its writes `refused`, and the statistics say why. A closed store
 * and an aborted signal reject, and `list` does when the driver fails.
 */
export class UnstoragePageStore implements PageStore {
  readonly specVersion = 'v1';
  readonly name = 'unstorage page store';
  readonly supports: PageStoreSupports;
  readonly limits: PageStoreLimits;
  readonly #gate = new CallGate(this.name);
  readonly #counts = new PageCounts();
  readonly #faults = { timeouts: 0, driverErrors: 0 };
  readonly #storage: UnstorageLike;
  readonly #base: string;
  readonly #timeoutMs: number;
  readonly #flight: InFlight;
  /** The last that is under way for a page; the next one waits for it. */
  readonly #busy = new Map<string, Promise<unknown>>();
  #readBytes = FIRST_READ_BYTES;

  /** @throws {StoreOptionsError} `store-options` on options with which it could never work */
  constructor(options: UnstoragePageStoreOptions) {
    const {
      storage,
      base = 'bufferwise',
      persistent = false,
      maxBatch = 64,
      maxPageBytes = 16 << 20,
      timeoutMs = 5000,
    } = options;
    const { maxItemsInFlight = 16, maxBytesInFlight = 64 << 20 } = options;
    checkCounts(this.name, { maxBatch, maxPageBytes, timeoutMs, maxItemsInFlight, maxBytesInFlight });
    if (!/^[\w-]+(?::[\w-]+)*$/.test(base)) {
      throw new StoreOptionsError(
        `${this.name}: base is ${JSON.stringify(base)}; use letters, digits, - and _, with : between them`,
      );
    }
    this.supports = { list: true, ttl: false, quota: false, persistent, shared: false };
    this.limits = { maxBatch, maxPageBytes };
    this.#storage = storage;
    this.#base = base;
    this.#timeoutMs = timeoutMs;
    this.#flight = new InFlight({ maxRequests: maxItemsInFlight, maxBytes: maxBytesInFlight });
  }

  has(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#call(keys, options, async (key, time) => {
      return (await this.#item(key, 0, time, (item) => this.#storage.hasItem(item))) ?? false;
    });
  }

  get(keys: readonly PageKey[], options?: CallOptions): Promise<readonly (Uint8Array | null)[]> {
    return this.#call(keys, options, async (key, time) => {
      const read = await this.#item(key, this.#readBytes, time, (item) => this.#readItem(key, item));
      if (read === null || read === 'missing') return this.#counts.miss();
      if (read === 'damaged') return this.#counts.damaged();
      this.#readBytes = Math.max(this.#readBytes, read.length + SEAL_BYTES);
      return this.#counts.hit(read);
    });
  }

  put(entries: readonly PageEntry[], options?: CallOptions): Promise<readonly PutOutcome[]> {
    return this.#call(entries, options, async (entry, time) => {
      const { key, bytes } = entry;
      if (bytes.length > this.limits.maxPageBytes) return this.#counts.refused('too-large');
      const outcome = await this.#item(entry, bytes.length + SEAL_BYTES, time, async (item) => {
        if (await this.#storage.hasItem(item)) return 'exists';
        // The bytes belong to the caller again once the call has settled.
        time.signal.throwIfAborted();
        await this.#storage.setItemRaw(item, sealPage(key, bytes));
        return 'stored';
      });
      if (outcome === null) return this.#counts.refused('full');
      return outcome === 'stored' ? this.#counts.stored(bytes) : { status: 'exists' };
    });
  }

  delete(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#call(keys, options, async (key, time) => {
      const removed = await this.#item(key, 0, time, async (item) => {
        if (!(await this.#storage.hasItem(item))) return false;
        await this.#storage.removeItem(item);
        return true;
      });
      return removed ?? false;
    });
  }

  /** @throws {StoreUnavailableError} `store-unavailable` when the driver gives no keys */
  list(options?: ListOptions): Promise<PageList> {
    return this.#gate.run(options, () =>
      inTime(this.#timeoutMs, options, async (time) => {
        const settled = await time.settle((async () => this.#storage.getKeys(this.#base))());
        options?.signal?.throwIfAborted();
        if (settled.status !== 'done') {
          this.#count(settled.status, time);
          throw new StoreUnavailableError(
            `${this.name}: the driver gave no list of its keys; see the cause, and try again later`,
            {
              cause: settled.status === 'failed' ? settled.error : undefined,
            },
          );
        }
        const names = settled.value
          .map((item) => this.#nameOf(item))
          .filter((name) => name !== undefined && name > (options?.cursor ?? ''));
        const keys = (names as string[]).sort().slice(0, this.limits.maxBatch);
        return { keys: keys.map((key) => ({ key })), cursor: keys.length < names.length ? (keys.at(-1) ?? null) : null };
      }),
    );
  }

  statistics(): UnstoragePageStoreStatistics {
    return { ...this.#counts.statistics(), ...this.#faults };
  }

  close(): Promise<void> {
    return this.#gate.close();
  }

  #call<T extends PageKey, R>(
    batch: readonly T[],
    options: CallOptions | undefined,
    one: (each: T, time: CallTime) => Promise<R>,
  ): Promise<readonly R[]> {
    return this.#gate.run(options, () =>
      inTime(this.#timeoutMs, options, (time) => Promise.all(batch.map((each) => one(each, time)))),
    );
  }

  /**
   * What `work` does with the item of a page, once there is room and nothing else is done with it.
   *
   * @param bytes of pages that it moves
   * @returns null when it failed or took too long, which has been counted
   */
  async #item<T>({ key }: PageKey, bytes: number, time: CallTime, work: (item: string) => Promise<T>): Promise<T | null> {
    const item = `${this.#base}:${key}${ENDING}`;
    const turn = (this.#busy.get(item) ?? Promise.resolve()).then(() => this.#inFlight(item, bytes, time, work));
    const over = turn.then(
      () => {},
      () => {},
    );
    this.#busy.set(item, over);
    over.then(() => {
      if (this.#busy.get(item) === over) this.#busy.delete(item);
    });
    const settled = await time.settle(turn);
    if (settled.status === 'done') return settled.value;
    this.#count(settled.status, time);
    return null;
  }

  async #inFlight<T>(item: string, bytes: number, time: CallTime, work: (item: string) => Promise<T>): Promise<T> {
    const signal = AbortSignal.any([time.signal]);
    if (!(await this.#flight.enter(bytes, signal))) throw signal.reason;
    try {
      signal.throwIfAborted();
      return await work(item);
    } finally {
      this.#flight.leave(bytes);
    }
  }

  /** Whoever gave up says nothing of the driver. */
  #count(status: 'failed' | 'late', time: CallTime): void {
    if (time.expired) this.#faults.timeouts++;
    else if (status === 'failed' && !time.signal.aborted) this.#faults.driverErrors++;
  }

  /** @returns the page, which belongs to the caller; what is damaged is removed */
  async #readItem({ key }: PageKey, item: string): Promise<Uint8Array | 'missing' | 'damaged'> {
    const value: unknown = await this.#storage.getItemRaw(item);
    const sealed = bytesOf(value);
    const page = sealed !== null && sealed.length <= this.limits.maxPageBytes + SEAL_BYTES ? openSealedPage(key, sealed) : null;
    if (page !== null) return Uint8Array.from(page);
    if (value === null || value === undefined) return 'missing';
    await this.#storage.removeItem(item);
    return 'damaged';
  }

  /** The key of a page from that of an item; undefined for items of others. */
  #nameOf(item: string): string | undefined {
    if (!item.startsWith(`${this.#base}:`) || !item.endsWith(ENDING)) return undefined;
    const key = item.slice(this.#base.length + 1, -ENDING.length);
    return isPageKey({ key }) ? key : undefined;
  }
}

/** Drivers give back what they like: bytes, a buffer, or none of both. */
function bytesOf(value: unknown): Uint8Array | null {
  if (value instanceof Uint8Array) return value;
  return value instanceof ArrayBuffer ? new Uint8Array(value) : null;
}
