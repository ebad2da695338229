import type { OpfsDirectory, OpfsFile, OpfsLocks } from '../../src/tiers/stores/opfs-tier-store.ts';

class NotFound extends Error {
  override readonly name = 'NotFoundError';
}

/** A directory of an origin private file system, in memory. */
export class FakeDirectory implements OpfsDirectory {
  readonly directories = new Map<string, FakeDirectory>();
  readonly files = new Map<string, Uint8Array>();
  /** Fails the next write of a file. */
  failNextWrite = false;

  async getDirectoryHandle(name: string, options: { create?: boolean } = {}): Promise<FakeDirectory> {
    const known = this.directories.get(name);
    if (known !== undefined) return known;
    if (!options.create) throw new NotFound(name);
    const made = new FakeDirectory();
    this.directories.set(name, made);
    return made;
  }

  async getFileHandle(name: string, options: { create?: boolean } = {}): Promise<OpfsFile> {
    if (!this.files.has(name)) {
      if (!options.create) throw new NotFound(name);
      this.files.set(name, new Uint8Array(0));
    }
    return {
      getFile: async () => ({ arrayBuffer: async () => Uint8Array.from(this.files.get(name) ?? []).buffer }),
      createWritable: async () => {
        let written = new Uint8Array(0);
        return {
          write: async (data: Uint8Array) => {
            if (this.failNextWrite) {
              this.failNextWrite = false;
              throw new Error('the quota is used up');
            }
            written = Uint8Array.from(data);
          },
          close: async () => void this.files.set(name, written),
          abort: async () => {},
        };
      },
    };
  }

  async removeEntry(name: string): Promise<void> {
    if (!this.directories.delete(name) && !this.files.delete(name)) throw new NotFound(name);
  }

  async *keys(): AsyncIterableIterator<string> {
    yield* [...this.directories.keys(), ...this.files.keys()];
  }
}

/** Locks of one origin. `lose` lets go of all that are held, as closed tabs do. */
export class FakeLocks implements OpfsLocks {
  #held = new Set<string>();

  lose(): void {
    this.#held = new Set();
  }

  async request(
    name: string,
    options: { ifAvailable: boolean },
    work: (lock: unknown) => Promise<void> | undefined,
  ): Promise<void> {
    const held = this.#held;
    if (held.has(name)) {
      if (!options.ifAvailable) throw new Error(`nobody should wait for ${name}`);
      await work(null);
      return;
    }
    held.add(name);
    await work({ name });
    held.delete(name);
  }
}
