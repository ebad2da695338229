import {
  CallGate,
  type CallOptions,
  checkPageKey,
  type ListOptions,
  type PageEntry,
  type PageKey,
  type PageList,
  type PageStore,
  type PageStoreStatistics,
  type PutOutcome,
} from '@bufferwise/adapter-kit';
import { ConnectorError } from '../errors.ts';
import { PageCounts } from '../remote/page-counts.ts';
import { lockDirectory, lockedError } from './directory-lock.ts';
import type { OpfsDirectory } from './opfs-files.ts';
import { SegmentFolder } from './segment-folder.ts';
import { type Flush, SegmentedPages } from './segmented-pages.ts';

export interface OpfsPagesOptions {
  /** Name of the store's directory in the file system of the origin. Default `bufferwise-pages`. */
  readonly directory?: string;
  /** Bytes that files may take up, all in all. Default 1 GiB. The least recently used pages go first. */
  readonly quotaBytes?: number;
  /** Default `never`: a page that is closed and a browser that ends lose nothing by it, a power cut costs pages. */
  readonly flush?: Flush;
  /** So many milliseconds another store that has the directory is waited for, such as that of a page that was reloaded. Default 2,000. */
  readonly lockMs?: number;
}

export const OPFS_SUPPORTS = { list: true, ttl: false, quota: true, persistent: true, shared: false } as const;
export const OPFS_LIMITS = { maxBatch: 64, maxPageBytes: 1 << 26 } as const;

const DEFAULT_QUOTA_BYTES = 1 << 30;
const DEFAULT_LOCK_MS = 2000;

/**
 * Pages in the origin private file system, for code that runs in a dedicated worker itself: only there browsers have synchronous access to files.
 * Elsewhere take {@link OpfsPageStore}, which talks to one of these.
 */
export class DirectOpfsPageStore implements PageStore {
  readonly specVersion = 'v1';
  readonly name = 'OPFS page store';
  readonly supports = OPFS_SUPPORTS;
  readonly limits = OPFS_LIMITS;
  readonly #gate = new CallGate(this.name);
  readonly #counts = new PageCounts();
  readonly #pages: SegmentedPages;
  readonly #unlock: () => void;
  /** The last change that is under way: they go one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(pages: SegmentedPages, unlock: () => void) {
    this.#pages = pages;
    this.#unlock = unlock;
  }

  /**
   * Rejects with {ConnectorError} `store-locked` when another store has the directory, `no-opfs` where there is no such file system or this is no
   * dedicated worker, `invalid-option`, and with what the browser says when the directory cannot be used.
   */
  static async open(options: OpfsPagesOptions = {}): Promise<DirectOpfsPageStore> {
    const {
      directory = 'bufferwise-pages',
      quotaBytes = DEFAULT_QUOTA_BYTES,
      lockMs = DEFAULT_LOCK_MS,
      flush = 'never',
    } = options;
    checkOpfsOptions(options);
    const root = await originDirectory();
    const until = performance.now() + lockMs;
    const unlock = await lockDirectory(directory, lockMs);
    try {
      const folder = new SegmentFolder(await root.getDirectoryHandle(directory, { create: true }), until);
      const pages = await SegmentedPages.open(folder, { quotaBytes, maxPageBytes: OPFS_LIMITS.maxPageBytes, flush });
      return new DirectOpfsPageStore(pages, unlock);
    } catch (error) {
      unlock();
      throw (error as { name?: string }).name === 'NoModificationAllowedError' ? lockedError(directory, error) : error;
    }
  }

  has(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#gate.run(options, () => keys.map(({ key }) => this.#pages.has(key)));
  }

  get(keys: readonly PageKey[], options?: CallOptions): Promise<readonly (Uint8Array | null)[]> {
    return this.#gate.run(options, () =>
      keys.map(({ key }) => {
        const page = this.#pages.get(key);
        if (page === 'missing') return this.#counts.miss();
        return page === 'damaged' ? this.#counts.damaged() : this.#counts.hit(page);
      }),
    );
  }

  put(entries: readonly PageEntry[], options?: CallOptions): Promise<readonly PutOutcome[]> {
    return this.#gate.run(options, () => {
      entries.forEach(checkPageKey);
      return this.#inTurn(options, async () => {
        const outcomes = await this.#pages.put(entries);
        for (const [i, outcome] of outcomes.entries()) {
          if (outcome.status === 'stored') this.#counts.stored(entries[i].bytes);
          else if (outcome.status === 'refused') this.#counts.refused(outcome.reason);
        }
        return outcomes;
      });
    });
  }

  delete(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#gate.run(options, () => this.#inTurn(options, () => keys.map(({ key }) => this.#pages.delete(key))));
  }

  list(options?: ListOptions): Promise<PageList> {
    return this.#gate.run(options, () => this.#pages.index.piece(options?.cursor, this.limits.maxBatch));
  }

  statistics(): PageStoreStatistics {
    const { usedBytes, quotaBytes } = this.#pages;
    return { ...this.#counts.statistics(), usedBytes, quotaBytes };
  }

  close(): Promise<void> {
    return this.#gate.close(() => {
      try {
        this.#pages.close();
      } finally {
        this.#unlock();
      }
    });
  }

  #inTurn<T>(options: CallOptions | undefined, change: () => T | Promise<T>): Promise<T> {
    const result = this.#turn.then(() => {
      options?.signal?.throwIfAborted();
      return change();
    });
    this.#turn = result.catch(() => {});
    return result;
  }
}

/** @throws {ConnectorError} `invalid-option` on a quota or a time that is none, or a directory that cannot be a name */
export function checkOpfsOptions({ directory, quotaBytes, lockMs }: OpfsPagesOptions): void {
  if (directory !== undefined && (directory === '' || /^\.{1,2}$|[/\\]/.test(directory))) {
    throw new ConnectorError(
      'invalid-option',
      `OPFS page store: directory is ${JSON.stringify(directory)}; pass the name of one directory, without / and \\`,
    );
  }
  for (const [name, value] of Object.entries({ quotaBytes, lockMs })) {
    if (value === undefined || (Number.isFinite(value) && value > 0)) continue;
    throw new ConnectorError('invalid-option', `OPFS page store: ${name} is ${value}; pass a number above 0, or leave it out`);
  }
}

async function originDirectory(): Promise<OpfsDirectory> {
  const file = (globalThis as { FileSystemFileHandle?: { prototype: object } }).FileSystemFileHandle;
  const why =
    navigator.storage?.getDirectory === undefined
      ? 'this platform has no origin private file system, or none in a page that is not secure'
      : file === undefined || !('createSyncAccessHandle' in file.prototype)
        ? 'files can be read and written at once in dedicated workers only, and this is none, or a browser without that'
        : null;
  if (why !== null)
    throw new ConnectorError('no-opfs', `OPFS page store: ${why}; take OpfsPageStore with a worker, or IndexedDbPageStore`);
  try {
    return (await navigator.storage.getDirectory()) as unknown as OpfsDirectory;
  } catch (cause) {
    throw new ConnectorError(
      'no-opfs',
      'OPFS page store: this browser gives no origin private file system, perhaps because the window is private; take IndexedDbPageStore',
      { cause },
    );
  }
}
