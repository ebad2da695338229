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
import { entryPieces } from '../entry-pieces.ts';
import { ConnectorError } from '../errors.ts';
import { InFlight } from '../remote/in-flight.ts';
import { untilAborted } from '../until-aborted.ts';
import { checkOpfsOptions, OPFS_LIMITS, OPFS_SUPPORTS, type OpfsPagesOptions } from './direct-opfs-page-store.ts';
import { MESSAGE_BYTES } from './protocol.ts';
import { WorkerLink } from './worker-link.ts';

export interface OpfsPageStoreOptions extends OpfsPagesOptions {
  /**
   * A dedicated worker that loads `@bufferwise/adapter-connectors/opfs-worker` as a module, or what makes one. One that was made is the store's, and
   * ends with it; one that was handed in stays the caller's, and may serve other stores and purposes.
   */
  readonly worker: Worker | (() => Worker);
  /** So many milliseconds a worker has for its first word. Default 30,000. */
  readonly startMs?: number;
}

const DEFAULT_START_MS = 30_000;

const NEVER = new AbortController().signal;

/** Messages with pages that are on their way to the worker or back, and their bytes. */
const IN_FLIGHT = { maxRequests: 8, maxBytes: 4 * MESSAGE_BYTES };

/**
 * Pages in the origin private file system of a browser, kept by a dedicated worker: for pages, and for workers that leave files to another one.
 *
 * A page is stored once all its bytes are in a file; it survives a reload, a closed tab, a browser that was killed. What a crash has torn
 * is a miss. One store of an origin has a directory at a time, in whatever tab. What the browser has no room for is refused. When the worker
 * ends, calls reject with {ConnectorError} `worker-lost`, also those under way; a new store finds what was stored.
 */
export class OpfsPageStore implements PageStore {
  readonly specVersion = 'v1';
  readonly name = 'OPFS page store';
  readonly supports = OPFS_SUPPORTS;
  readonly limits = OPFS_LIMITS;
  readonly #gate = new CallGate(this.name);
  readonly #flight = new InFlight(IN_FLIGHT);
  readonly #link: WorkerLink;

  private constructor(link: WorkerLink) {
    this.#link = link;
  }

  /**
   * Rejects with {ConnectorError} `store-locked` when another store has the directory, `no-opfs` where there is no such file system, `worker-lost` on a
   * worker that does not work, `invalid-option`, and with what the browser says when the directory cannot be used.
   */
  static async open(options: OpfsPageStoreOptions): Promise<OpfsPageStore> {
    const { worker, startMs = DEFAULT_START_MS, directory, quotaBytes, lockMs, flush } = options;
    const pages = { directory, quotaBytes, lockMs, flush };
    checkOpfsOptions(pages);
    if (!(startMs > 0))
      throw new ConnectorError(
        'invalid-option',
        `OPFS page store: startMs is ${startMs}; pass a number above 0, or leave it out`,
      );
    const running = typeof worker === 'function' ? worker() : worker;
    const release = typeof worker === 'function' ? () => running.terminate() : () => {};
    return new OpfsPageStore(await WorkerLink.open(running, pages, startMs, release));
  }

  has(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#call(options, () => this.#link.ask('has', { keys }));
  }

  get(keys: readonly PageKey[], options?: CallOptions): Promise<readonly (Uint8Array | null)[]> {
    return this.#call(options, async (signal) => {
      const pages: (Uint8Array | null)[] = [];
      while (pages.length < keys.length) {
        const rest = keys.slice(pages.length);
        pages.push(...(await this.#inFlight(MESSAGE_BYTES, signal, () => this.#link.ask('get', { keys: rest }))));
      }
      return pages;
    });
  }

  put(entries: readonly PageEntry[], options?: CallOptions): Promise<readonly PutOutcome[]> {
    return this.#call(options, async (signal) => {
      entries.forEach(checkPageKey);
      const pieces = entryPieces(entries, MESSAGE_BYTES);
      return (await Promise.all(pieces.map((piece) => this.#putPiece(piece, signal)))).flat();
    });
  }

  delete(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#call(options, () => this.#link.ask('delete', { keys }));
  }

  list(options?: ListOptions): Promise<PageList> {
    return this.#call(options, () => this.#link.ask('list', { cursor: options?.cursor }));
  }

  /** As the worker's last answer had them. */
  statistics(): PageStoreStatistics {
    return this.#link.statistics;
  }

  close(): Promise<void> {
    return this.#gate.close(() => this.#link.close());
  }

  #call<T>(options: CallOptions | undefined, call: (signal: AbortSignal | undefined) => Promise<T>): Promise<T> {
    return this.#gate.run(options, () => untilAborted(options, call));
  }

  #putPiece(piece: readonly PageEntry[], signal: AbortSignal | undefined): Promise<readonly PutOutcome[]> {
    return this.#inFlight(bytesOf(piece), signal, () => {
      // The pages are their owner's: the worker gets copies, which move there.
      const entries = piece.map((entry) => ({ ...entry, bytes: entry.bytes.slice() }));
      return this.#link.ask(
        'put',
        { entries },
        entries.map(({ bytes }) => bytes.buffer),
      );
    });
  }

  async #inFlight<T>(bytes: number, signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> {
    if (!(await this.#flight.enter(bytes, signal ?? NEVER))) throw signal?.reason;
    try {
      signal?.throwIfAborted();
      return await call();
    } finally {
      this.#flight.leave(bytes);
    }
  }
}

function bytesOf(entries: readonly PageEntry[]): number {
  return entries.reduce((sum, { bytes }) => sum + bytes.length, 0);
}
