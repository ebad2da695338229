import { link, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  CallGate,
  type CallOptions,
  openSealedPage,
  type PageEntry,
  type PageKey,
  type PageStore,
  type PageStoreStatistics,
  type PutOutcome,
  sealPage,
} from '@bufferwise/adapter-kit';

/** Pages as files of one directory, which must exist. A page is there once its file has its name, whole; several processes may use it. */
export class DirectoryPageStore implements PageStore {
  readonly specVersion = 'v1';
  readonly name = 'directory page store';
  readonly supports = { list: false, ttl: false, quota: false, persistent: true, shared: true } as const;
  readonly limits = { maxBatch: 64, maxPageBytes: 1 << 24 } as const;
  readonly directory: string;
  readonly #gate = new CallGate(this.name);
  readonly #counts = { hits: 0, misses: 0, damaged: 0, stored: 0, refused: 0, bytesRead: 0, bytesWritten: 0 };

  constructor(directory: string) {
    this.directory = directory;
  }

  has(keys: readonly PageKey[], options?: CallOptions): Promise<boolean[]> {
    return this.#gate.run(options, async () => {
      const names = new Set(await readdir(this.directory));
      return keys.map(({ key }) => names.has(`${key}.page`));
    });
  }

  get(keys: readonly PageKey[], options?: CallOptions): Promise<(Uint8Array | null)[]> {
    return this.#gate.run(options, () => Promise.all(keys.map(({ key }) => this.#read(key))));
  }

  put(entries: readonly PageEntry[], options?: CallOptions): Promise<PutOutcome[]> {
    return this.#gate.run(options, () => Promise.all(entries.map(({ key, bytes }) => this.#write(key, bytes))));
  }

  delete(keys: readonly PageKey[], options?: CallOptions): Promise<boolean[]> {
    return this.#gate.run(options, () => Promise.all(keys.map(({ key }) => succeeds(rm(this.#file(key))))));
  }

  statistics(): PageStoreStatistics {
    return { ...this.#counts, usedBytes: null, quotaBytes: null };
  }

  close(): Promise<void> {
    return this.#gate.close();
  }

  #file(key: string): string {
    return join(this.directory, `${key}.page`);
  }

  async #read(key: string): Promise<Uint8Array | null> {
    const sealed = await readFile(this.#file(key)).catch(() => null);
    const page = sealed && openSealedPage(key, sealed);
    if (page) {
      this.#counts.hits++;
      this.#counts.bytesRead += page.length;
      return page;
    }
    this.#counts.misses++;
    if (sealed) this.#counts.damaged++;
    // What is damaged makes room for a page that is whole.
    if (sealed) await rm(this.#file(key), { force: true });
    return null;
  }

  async #write(key: string, bytes: Uint8Array): Promise<PutOutcome> {
    const unfinished = join(this.directory, `${crypto.randomUUID()}.tmp`);
    await writeFile(unfinished, sealPage(key, bytes));
    // Of several writers one wins, and a reader sees all of a page or nothing: `link` fails where there is one.
    const isFirst = await succeeds(link(unfinished, this.#file(key)));
    await rm(unfinished);
    if (!isFirst) return { status: 'exists' };
    this.#counts.stored++;
    this.#counts.bytesWritten += bytes.length;
    return { status: 'stored' };
  }
}

const succeeds = (done: Promise<unknown>): Promise<boolean> =>
  done.then(
    () => true,
    () => false,
  );
