import {
  CallGate,
  type CallOptions,
  type PageEntry,
  type PageKey,
  type PageStore,
  type PageStoreLimits,
  type PageStoreStatistics,
  type PageStoreSupports,
  type PutOutcome,
} from '@bufferwise/adapter-kit';
import { ConnectorError } from '../errors.ts';
import { PageCounts } from '../remote/page-counts.ts';
import { PageSecrets } from './page-secrets.ts';

/** Least bytes of a key. */
const MIN_KEY_BYTES = 16;

export interface EncryptedStoreOptions {
  /** 16 random bytes or more, the same wherever pages are shared. Copied. Another key sees none of the pages, and does not disturb them. */
  readonly key: Uint8Array;
}

/**
 * A store whose medium learns nothing of texts and cannot give out a page that nobody stored: for servers that others write to as well. Pages
 * are sealed with AES-256-GCM under their names and names are replaced by their HMAC-SHA-256, so who has the medium but not the key can neither
 * read a page, nor make one, nor put one in the place of another, nor try whether a text was seen. How many pages there are, how long they are
 * and which belong to texts of one beginning remains visible; so does that a page was taken away.
 *
 * What does not open is a miss, counts as `damaged`, and is removed. There is no `list`: names do not lead back. A key is good for 2^32 pages,
 * as each is sealed with 12 random bytes. Needs `crypto.subtle`, which browsers have in secure contexts. Closing it closes `store`.
 *
 * @throws {ConnectorError} `invalid-option` on a key of less than 16 bytes, or where `crypto.subtle` is missing
 */
export function encryptedStore(store: PageStore, { key }: EncryptedStoreOptions): PageStore {
  if (!(key instanceof Uint8Array) || key.length < MIN_KEY_BYTES)
    throw new ConnectorError(
      'invalid-option',
      `encrypted store: the key must be a Uint8Array of ${MIN_KEY_BYTES} random bytes or more`,
    );
  if (globalThis.crypto?.subtle === undefined)
    throw new ConnectorError(
      'invalid-option',
      'encrypted store: crypto.subtle is missing; in a browser, serve the page over https',
    );
  return new EncryptedStore(store, new PageSecrets(key));
}

class EncryptedStore implements PageStore {
  readonly specVersion = 'v1';
  readonly name: string;
  readonly supports: PageStoreSupports;
  readonly limits: PageStoreLimits;
  readonly exact: boolean;
  readonly #store: PageStore;
  readonly #secrets: PageSecrets;
  readonly #gate: CallGate;
  readonly #counts = new PageCounts();

  constructor(store: PageStore, secrets: PageSecrets) {
    this.#store = store;
    this.#secrets = secrets;
    this.name = `encrypted ${store.name}`;
    this.exact = store.exact !== false;
    this.supports = { ...store.supports, list: false };
    const { maxBatch, maxPageBytes } = store.limits;
    this.limits = { maxBatch, maxPageBytes: maxPageBytes - PageSecrets.OVERHEAD_BYTES };
    this.#gate = new CallGate(this.name);
  }

  has(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#gate.run(options, () => this.#store.has(this.#hidden(keys), options));
  }

  get(keys: readonly PageKey[], options?: CallOptions): Promise<readonly (Uint8Array | null)[]> {
    return this.#gate.run(options, async () => {
      const hidden = this.#hidden(keys);
      const sealed = await this.#store.get(hidden, options);
      const pages = await Promise.all(sealed.map((bytes, i) => bytes && this.#secrets.open(keys[i].key, bytes)));
      const unfit = hidden.filter((_, i) => sealed[i] !== null && pages[i] === null);
      // Best done before anybody computes the page anew and finds its name taken.
      if (unfit.length > 0) await this.#store.delete(unfit, options).catch(() => {});
      return pages.map((page, i) => {
        if (page !== null) return this.#counts.hit(page);
        return sealed[i] === null ? this.#counts.miss() : this.#counts.damaged();
      });
    });
  }

  put(entries: readonly PageEntry[], options?: CallOptions): Promise<readonly PutOutcome[]> {
    return this.#gate.run(options, async () => {
      const hidden = this.#hidden(entries);
      const sealed = await Promise.all(
        entries.map(async ({ key, bytes, ttlMs }, i) => ({ ...hidden[i], ttlMs, bytes: await this.#secrets.seal(key, bytes) })),
      );
      const outcomes = await this.#store.put(sealed, options);
      return outcomes.map((outcome, i) => {
        if (outcome.status === 'stored') return this.#counts.stored(entries[i].bytes);
        return outcome.status === 'refused' ? this.#counts.refused(outcome.reason) : outcome;
      });
    });
  }

  delete(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#gate.run(options, () => this.#store.delete(this.#hidden(keys), options));
  }

  statistics(): PageStoreStatistics {
    const { damaged, usedBytes, quotaBytes } = this.#store.statistics();
    const own = this.#counts.statistics();
    return { ...own, damaged: own.damaged + damaged, usedBytes, quotaBytes };
  }

  close(): Promise<void> {
    return this.#gate.close(() => this.#store.close());
  }

  #hidden(keys: readonly PageKey[]): PageKey[] {
    return keys.map(({ key, affinity }) => ({
      key: this.#secrets.name(key),
      ...(affinity !== undefined && { affinity: this.#secrets.name(affinity) }),
    }));
  }
}
