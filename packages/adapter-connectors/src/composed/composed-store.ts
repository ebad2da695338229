import {
  CallGate,
  type CallOptions,
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

export interface ComposedStoreOptions {
  /**
   * `through`: a page counts as stored when the farthest store has it, or, while that one is down, another one. `back`: when the nearest
   * has it; the others get it in the background, and what is still on its way is lost with the process. Default `through`.
   */
  readonly write?: 'through' | 'back';
  /** Bytes on their way in the background. More than that are written through, and not promoted. Default 64 MiB. */
  readonly backgroundBytes?: number;
}

/** Calls of one store that have failed. */
export interface StoreFaults {
  readonly store: string;
  readonly faults: number;
  /** The latest; undefined without any. */
  readonly lastError: unknown;
}

/** Several stores as one. */
export interface ComposedStore extends PageStore {
  /** Calls that have failed, store by store. */
  faults(): readonly StoreFaults[];
  /** Settles when nothing is under way in the background. */
  flushed(): Promise<void>;
}

/**
 * Several stores as one, from near and fast to far and large. What is asked for is looked for in the near ones first, and what a far one had is
 * put into the nearer ones in the background. A store that fails is passed over: a call rejects only when all stores have failed, or,
 * in `delete`, when one could not forget what it may give out later. Closing it closes them.
 *
 * Times of pages (`ttlMs`) are handed on, and not promised: a page that was promoted stays as long as the near store likes. `usedBytes` and
 * `damaged` are sums over the stores, so a page that one had damaged and another one whole counts as damaged and as a hit.
 *
 * @throws {ConnectorError} `invalid-option` without a store
 */
export function composedStore(stores: readonly PageStore[], options: ComposedStoreOptions = {}): ComposedStore {
  return new StoreChain(stores, options);
}

class StoreChain implements ComposedStore {
  readonly specVersion = 'v1';
  readonly name: string;
  readonly supports: PageStoreSupports;
  readonly limits: PageStoreLimits;
  readonly exact: boolean;
  readonly #gate: CallGate;
  readonly #stores: readonly PageStore[];
  readonly #write: 'through' | 'back';
  readonly #backgroundBytes: number;
  readonly #faults: { faults: number; lastError: unknown }[];
  readonly #counts = { hits: 0, misses: 0, stored: 0, refused: 0, bytesRead: 0, bytesWritten: 0 };
  /** Pages on their way in the background, by key. */
  readonly #onTheWay = new Map<string, Promise<void>>();
  #bytesOnTheWay = 0;

  constructor(stores: readonly PageStore[], { write = 'through', backgroundBytes = 1 << 26 }: ComposedStoreOptions) {
    const far = stores.at(-1);
    if (far === undefined)
      throw new ConnectorError('invalid-option', 'composed store: it was given no store; pass at least one, the nearest first');
    this.#stores = stores;
    this.#write = write;
    this.#backgroundBytes = backgroundBytes;
    this.#faults = stores.map(() => ({ faults: 0, lastError: undefined }));
    this.name = `composed store of ${stores.map(({ name }) => name).join(', ')}`;
    this.#gate = new CallGate(this.name);
    const every = (flag: keyof PageStoreSupports) => stores.every(({ supports }) => supports[flag]);
    this.supports = {
      list: every('list'),
      ttl: false,
      quota: every('quota'),
      persistent: write === 'through' ? far.supports.persistent : every('persistent'),
      shared: every('shared'),
    };
    this.exact = stores.every(({ exact }) => exact !== false);
    this.limits = {
      maxBatch: Math.min(...stores.map(({ limits }) => limits.maxBatch)),
      maxPageBytes: Math.min(...stores.map(({ limits }) => limits.maxPageBytes)),
    };
  }

  has(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#gate.run(options, async () => {
      const found = await this.#firstOf(
        keys,
        options,
        (store, rest) => store.has(rest, options),
        (answer) => answer,
      );
      return found.map(({ answer }) => answer === true);
    });
  }

  get(keys: readonly PageKey[], options?: CallOptions): Promise<readonly (Uint8Array | null)[]> {
    return this.#gate.run(options, async () => {
      const found = await this.#firstOf(
        keys,
        options,
        (store, rest) => store.get(rest, options),
        (bytes) => bytes !== null,
      );
      found.forEach(({ answer, depth }, i) => {
        if (answer && depth > 0) this.#promote(keys[i], answer, depth);
      });
      return found.map(({ answer }) => {
        if (!answer) {
          this.#counts.misses++;
          return null;
        }
        this.#counts.hits++;
        this.#counts.bytesRead += answer.length;
        return answer;
      });
    });
  }

  put(entries: readonly PageEntry[], options?: CallOptions): Promise<readonly PutOutcome[]> {
    return this.#gate.run(options, async () => {
      const outcomes =
        this.#write === 'through' ? await this.#putThrough(entries, options) : await this.#putBack(entries, options);
      outcomes.forEach(({ status }, i) => {
        if (status === 'refused') this.#counts.refused++;
        if (status !== 'stored') return;
        this.#counts.stored++;
        this.#counts.bytesWritten += entries[i].bytes.length;
      });
      return outcomes;
    });
  }

  delete(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#gate.run(options, async () => {
      // What is on its way would be there again a moment later.
      await Promise.all(keys.map(({ key }) => this.#onTheWay.get(key)));
      const answers = await Promise.allSettled(this.#stores.map((store) => store.delete(keys, options)));
      const was = keys.map(() => false);
      answers.forEach((answer, depth) => {
        if (answer.status === 'fulfilled')
          answer.value.forEach((each, i) => {
            was[i] ||= each;
          });
        else this.#faulted(depth, answer.reason);
      });
      for (const answer of answers) if (answer.status === 'rejected') throw answer.reason;
      return was;
    });
  }

  /** Store after store; what a nearer one has is not told again. */
  readonly list = (options?: ListOptions): Promise<PageList> =>
    this.#gate.run(options, async () => {
      const [, depthText = '0', inner = ''] = /^(\d+):(.*)$/s.exec(options?.cursor ?? '') ?? [];
      const depth = Number(depthText);
      const piece = await this.#stores[depth].list?.({ ...options, cursor: inner === '' ? undefined : inner });
      if (piece === undefined) return { keys: [], cursor: null };
      const nearer = await Promise.all(this.#stores.slice(0, depth).map((store) => store.has(piece.keys, options)));
      const keys = piece.keys.filter((_, i) => nearer.every((there) => !there[i]));
      if (piece.cursor !== null) return { keys, cursor: `${depth}:${piece.cursor}` };
      return { keys, cursor: depth + 1 < this.#stores.length ? `${depth + 1}:` : null };
    });

  statistics(): PageStoreStatistics {
    const each = this.#stores.map((store) => store.statistics());
    return {
      ...this.#counts,
      damaged: each.reduce((sum, { damaged }) => sum + damaged, 0),
      usedBytes: sumOf(each.map(({ usedBytes }) => usedBytes)),
      quotaBytes: sumOf(each.map(({ quotaBytes }) => quotaBytes)),
    };
  }

  faults(): readonly StoreFaults[] {
    return this.#faults.map(({ faults, lastError }, depth) => ({ store: this.#stores[depth].name, faults, lastError }));
  }

  async flushed(): Promise<void> {
    while (this.#onTheWay.size > 0) await Promise.all(this.#onTheWay.values());
  }

  close(): Promise<void> {
    return this.#gate.close(async () => {
      await this.flushed();
      const closed = await Promise.allSettled(this.#stores.map((store) => store.close()));
      for (const each of closed) if (each.status === 'rejected') throw each.reason;
    });
  }

  /** Asks store after store for what the nearer ones did not have. Rejects when every store that was asked has failed. */
  async #firstOf<T>(
    keys: readonly PageKey[],
    options: CallOptions | undefined,
    ask: (store: PageStore, keys: readonly PageKey[]) => Promise<readonly T[]>,
    isThere: (answer: T) => boolean,
  ): Promise<{ answer: T | undefined; depth: number }[]> {
    const found = keys.map((): { answer: T | undefined; depth: number } => ({ answer: undefined, depth: -1 }));
    let numAnswered = 0;
    for (const [depth, store] of this.#stores.entries()) {
      const open = keys.flatMap((_, i) => (found[i].answer === undefined ? [i] : []));
      if (open.length === 0) return found;
      const answers = await this.#attempt(depth, options, () =>
        ask(
          store,
          open.map((i) => keys[i]),
        ),
      );
      if (answers === null) continue;
      numAnswered++;
      open.forEach((i, j) => {
        if (isThere(answers[j])) found[i] = { answer: answers[j], depth };
      });
    }
    if (numAnswered === 0) throw this.#faults[this.#stores.length - 1].lastError;
    return found;
  }

  /** From near to far. The nearest that takes a page settles who of two writers was first. */
  async #putThrough(entries: readonly PageEntry[], options: CallOptions | undefined): Promise<PutOutcome[]> {
    const outcomes: (PutOutcome | undefined)[] = entries.map(() => undefined);
    for (const [depth, store] of this.#stores.entries()) {
      const open = entries.flatMap((_, i) => (outcomes[i]?.status === 'exists' ? [] : [i]));
      if (open.length === 0) break;
      const answers = await this.#attempt(depth, options, () =>
        store.put(
          open.map((i) => entries[i]),
          options,
        ),
      );
      open.forEach((i, j) => {
        if (answers !== null) outcomes[i] = answers[j];
      });
    }
    return outcomes.map((outcome) => {
      if (outcome === undefined) throw this.#faults[this.#stores.length - 1].lastError;
      return outcome;
    });
  }

  async #putBack(entries: readonly PageEntry[], options: CallOptions | undefined): Promise<PutOutcome[]> {
    const numBytes = entries.reduce((sum, { bytes }) => sum + bytes.length, 0);
    if (this.#bytesOnTheWay + numBytes > this.#backgroundBytes) return this.#putThrough(entries, options);
    const copies = entries.map((entry) => ({ ...entry, bytes: entry.bytes.slice() }));
    const near = await this.#attempt(0, options, () => this.#stores[0].put(entries, options));
    const left = copies.filter((_, i) => near?.[i].status === 'stored');
    for (const copy of left) {
      this.#inBackground(copy, async () => {
        for (const [depth, store] of this.#stores.entries())
          if (depth > 0) await this.#attempt(depth, undefined, () => store.put([copy]));
      });
    }
    // What the nearest did not take is for the others, now.
    const refused = copies.filter((_, i) => near === null || near[i].status === 'refused');
    const through = refused.length === 0 ? [] : await this.#putThrough(refused, options);
    return copies.map((copy, i) => (refused.includes(copy) ? through[refused.indexOf(copy)] : (near as PutOutcome[])[i]));
  }

  #promote(key: PageKey, found: Uint8Array, depth: number): void {
    if (this.#bytesOnTheWay + found.length > this.#backgroundBytes || this.#onTheWay.has(key.key)) return;
    const entry = { ...key, bytes: found.slice() };
    this.#inBackground(entry, async () => {
      for (let nearer = depth - 1; nearer >= 0; nearer--)
        await this.#attempt(nearer, undefined, () => this.#stores[nearer].put([entry]));
    });
  }

  #inBackground({ key, bytes }: PageEntry, work: () => Promise<void>): void {
    this.#bytesOnTheWay += bytes.length;
    const before = this.#onTheWay.get(key) ?? Promise.resolve();
    const done = before.then(work).then(() => {
      this.#bytesOnTheWay -= bytes.length;
      if (this.#onTheWay.get(key) === done) this.#onTheWay.delete(key);
    });
    this.#onTheWay.set(key, done);
  }

  /** The answer of one store, or null when it failed. An aborted call is no fault of a store. */
  async #attempt<T>(depth: number, options: CallOptions | undefined, call: () => Promise<T>): Promise<T | null> {
    try {
      return await call();
    } catch (error) {
      options?.signal?.throwIfAborted();
      this.#faulted(depth, error);
      return null;
    }
  }

  #faulted(depth: number, error: unknown): void {
    this.#faults[depth].faults++;
    this.#faults[depth].lastError = error;
  }
}

function sumOf(numbers: readonly (number | null)[]): number | null {
  return numbers.reduce((sum, each) => (sum === null || each === null ? null : sum + each), 0);
}
