import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { TierStore, TierStoreOptions } from '../../ports/tier-store.ts';
import { checkKey } from './check-key.ts';

/**
 * A disk tier in files, one a page, for Node.
 *
 * Each store has a folder of its own inside the one it is given, which goes with it: several processes may share the outer one.
 * What a process left there that ended without closing its store goes when the next one of the same machine opens one.
 * Files are written in place and not forced to the disk; whoever reads verifies.
 */
export class FileTierStore implements TierStore {
  /** The store's own folder. */
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** @param folder is made where it does not exist. Rejects with what the file system says when it cannot be used */
  static async open(folder: string): Promise<FileTierStore> {
    await mkdir(folder, { recursive: true });
    await removeLeftovers(folder);
    const own = join(folder, `${prefix()}${process.pid}-${randomBytes(6).toString('hex')}`);
    await mkdir(own);
    return new FileTierStore(own);
  }

  async put(key: string, bytes: Uint8Array, options: TierStoreOptions = {}): Promise<void> {
    await writeFile(this.#pathOf(key), bytes, { signal: options.signal });
  }

  async get(key: string, options: TierStoreOptions = {}): Promise<Uint8Array | undefined> {
    try {
      return await readFile(this.#pathOf(key), { signal: options.signal });
    } catch (error) {
      if ((error as { code?: string }).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  async delete(key: string, options: TierStoreOptions = {}): Promise<void> {
    options.signal?.throwIfAborted();
    await rm(this.#pathOf(key), { force: true });
  }

  async list(options: TierStoreOptions = {}): Promise<string[]> {
    options.signal?.throwIfAborted();
    return await readdir(this.folder);
  }

  async close(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  #pathOf(key: string): string {
    return join(this.folder, checkKey(key));
  }
}

/** Of the folders of this machine's stores: what runs on another one cannot be asked whether it lives. */
function prefix(): string {
  return `bufferwise-tier-${hostname().replaceAll(/[^\w.-]/g, '_')}-`;
}

async function removeLeftovers(folder: string): Promise<void> {
  const begin = prefix();
  for (const name of await readdir(folder)) {
    const pid = name.startsWith(begin) ? /^(\d+)-[0-9a-f]+$/.exec(name.slice(begin.length)) : null;
    if (pid !== null && !isRunning(Number(pid[1]))) await rm(join(folder, name), { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // It is there, and somebody else's.
    return (error as { code?: string }).code === 'EPERM';
  }
}
