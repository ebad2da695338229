import { BufferwiseError } from '@bufferwise/core-policy';
import type { TierStore, TierStoreOptions } from '../../ports/tier-store.ts';
import { checkKey } from './check-key.ts';

/** What of the origin private file system the store uses; `FileSystemDirectoryHandle` has it. */
export interface OpfsDirectory {
  getDirectoryHandle(name: string, options?: { create?: boolean }): Promise<OpfsDirectory>;
  getFileHandle(name: string, options?: { create?: boolean }): Promise<OpfsFile>;
  removeEntry(name: string, options?: { recursive?: boolean }): Promise<void>;
  keys(): AsyncIterableIterator<string>;
}

/** As `FileSystemFileHandle`. */
export interface OpfsFile {
  getFile(): Promise<{ arrayBuffer(): Promise<ArrayBuffer> }>;
  createWritable(): Promise<{
    write(data: Uint8Array): Promise<void>;
    close(): Promise<void>;
    abort(reason?: unknown): Promise<void>;
  }>;
}

/** What of `navigator.locks` the store uses. */
export interface OpfsLocks {
  request(name: string, options: { ifAvailable: boolean }, work: (lock: unknown) => Promise<void> | undefined): Promise<void>;
}

export interface OpfsTierStoreOptions {
  /** Directory inside the origin's file system that holds the stores' own. Default `bufferwise-tiers`. */
  name?: string;
  /** Default: that of the page's origin. */
  root?: OpfsDirectory;
  /** Default: those of the browser; without any, what a closed tab left behind is never removed. */
  locks?: OpfsLocks;
}

/**
 * A disk tier in the browser's origin private file system, one file a page.
 *
 * Each store has a directory of its own, so tabs do not meet. It holds a lock of that name as long as it is open, which a tab
 * loses when it goes: what such a tab left is removed when the next one opens a store.
 */
export class OpfsTierStore implements TierStore {
  readonly #parent: OpfsDirectory;
  readonly #name: string;
  readonly #directory: OpfsDirectory;
  readonly #unlock: () => void;

  private constructor(parent: OpfsDirectory, name: string, directory: OpfsDirectory, unlock: () => void) {
    this.#parent = parent;
    this.#name = name;
    this.#directory = directory;
    this.#unlock = unlock;
  }

  /** @throws {BufferwiseError} `no-opfs` where the platform has no such file system; whatever it says when it cannot be used */
  static async open(options: OpfsTierStoreOptions = {}): Promise<OpfsTierStore> {
    const { navigator } = globalThis as unknown as { navigator?: Platform };
    const root = options.root ?? (await navigator?.storage?.getDirectory?.());
    if (root === undefined)
      throw new BufferwiseError(
        'no-opfs',
        'this platform has no origin private file system; keep no disk tier, or give another store',
      );
    const locks = options.locks ?? navigator?.locks;
    const parent = await root.getDirectoryHandle(options.name ?? 'bufferwise-tiers', { create: true });
    if (locks !== undefined) await removeLeftovers(parent, locks);
    const name = `tier-${globalThis.crypto.randomUUID()}`;
    const unlock = locks === undefined ? () => {} : await hold(locks, name);
    return new OpfsTierStore(parent, name, await parent.getDirectoryHandle(name, { create: true }), unlock);
  }

  async put(key: string, bytes: Uint8Array, options: TierStoreOptions = {}): Promise<void> {
    options.signal?.throwIfAborted();
    const file = await this.#directory.getFileHandle(checkKey(key), { create: true });
    const writable = await file.createWritable();
    try {
      await writable.write(bytes);
    } catch (error) {
      await writable.abort(error).catch(() => {});
      throw error;
    }
    await writable.close();
  }

  async get(key: string, options: TierStoreOptions = {}): Promise<Uint8Array | undefined> {
    options.signal?.throwIfAborted();
    try {
      const file = await this.#directory.getFileHandle(checkKey(key));
      return new Uint8Array(await (await file.getFile()).arrayBuffer());
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async delete(key: string, options: TierStoreOptions = {}): Promise<void> {
    options.signal?.throwIfAborted();
    await this.#directory.removeEntry(checkKey(key)).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }

  async list(options: TierStoreOptions = {}): Promise<string[]> {
    options.signal?.throwIfAborted();
    const keys: string[] = [];
    for await (const key of this.#directory.keys()) keys.push(key);
    return keys;
  }

  async close(): Promise<void> {
    await this.#parent.removeEntry(this.#name, { recursive: true }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    this.#unlock();
  }
}

interface Platform {
  storage?: { getDirectory?(): Promise<OpfsDirectory> };
  locks?: OpfsLocks;
}

/** Takes a lock until the function that is returned is called, or the tab goes. */
function hold(locks: OpfsLocks, name: string): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const work = () => new Promise<void>((release) => resolve(release));
    locks.request(name, { ifAvailable: false }, work).catch(reject);
  });
}

async function removeLeftovers(parent: OpfsDirectory, locks: OpfsLocks): Promise<void> {
  const names: string[] = [];
  for await (const name of parent.keys()) names.push(name);
  for (const name of names) {
    await locks.request(name, { ifAvailable: true }, (lock) =>
      lock === null ? undefined : parent.removeEntry(name, { recursive: true }),
    );
  }
}

function isNotFound(error: unknown): boolean {
  return (error as { name?: string }).name === 'NotFoundError';
}
