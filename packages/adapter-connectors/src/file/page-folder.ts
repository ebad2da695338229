import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32c } from '@bufferwise/cache-manager/outside';

/**
 * How sure a page is on the disk when it counts as stored. `never`: the system writes when it likes, and a page that a power cut has
 * torn is found damaged later; `file`: its bytes are forced to the disk before it gets its name; `file-and-folder`: its name as well.
 */
export type Fsync = 'never' | 'file' | 'file-and-folder';

/** A file with a page. */
export interface PageFile {
  readonly key: string;
  readonly bytes: number;
  /** Milliseconds: its time of modification, which says when the page was used last. */
  readonly usedAt: number;
}

/** In front of a key, so that no name is one of a device; behind it, so that none ends with a dot. */
const NAME = /^p-([a-z0-9][a-z0-9._-]{0,199})\.page$/;

/**
 * Files of pages below a folder: `pages-1/<2 hexadecimal digits>/p-<key>.page`, and `pages-1/unfinished/` for what has no name yet. The
 * 1 is the version of this layout. Everything else in the folder is left alone. Calls reject with what the file system says.
 */
export class PageFolder {
  readonly root: string;
  readonly #fsync: Fsync;
  readonly #shards = new Set<string>();

  constructor(folder: string, fsync: Fsync) {
    this.root = join(folder, 'pages-1');
    this.#fsync = fsync;
  }

  pathOf(key: string): string {
    return join(this.#shardOf(key), `p-${key}.page`);
  }

  /** Makes the folders and removes what a process left unfinished that has ended. */
  async prepare(): Promise<void> {
    const unfinished = join(this.root, 'unfinished');
    await rm(unfinished, { recursive: true, force: true });
    await mkdir(unfinished, { recursive: true });
  }

  /** All pages, in no order. */
  async scan(): Promise<PageFile[]> {
    const pages: PageFile[] = [];
    for (const shard of await namesIn(this.root)) {
      if (!/^[0-9a-f]{2}$/.test(shard)) continue;
      const found = await Promise.all(
        (await namesIn(join(this.root, shard))).map(async (name): Promise<PageFile[]> => {
          const key = NAME.exec(name)?.[1];
          const path = join(this.root, shard, name);
          if (key === undefined || path !== this.pathOf(key)) return [];
          const info = await stat(path).catch(() => undefined);
          return info?.isFile() ? [{ key, bytes: info.size, usedAt: info.mtimeMs }] : [];
        }),
      );
      pages.push(...found.flat());
    }
    return pages;
  }

  /** The bytes of a file, or null when it is missing or has another length. */
  async read(key: string, length: number): Promise<Uint8Array | null> {
    let file: Awaited<ReturnType<typeof open>>;
    try {
      file = await open(this.pathOf(key), 'r');
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null;
      throw error;
    }
    try {
      // One byte more than there should be: a file that has grown is found out.
      const bytes = new Uint8Array(length + 1);
      let end = 0;
      for (;;) {
        const { bytesRead } = await file.read(bytes, end, bytes.length - end);
        end += bytesRead;
        if (bytesRead === 0 || end === bytes.length) break;
      }
      return end === length ? bytes.subarray(0, length) : null;
    } finally {
      await file.close();
    }
  }

  /** Writes a file beside its place, and moves it there once it is whole. */
  async publish(key: string, bytes: Uint8Array, usedAt: number): Promise<void> {
    const draft = join(this.root, 'unfinished', randomBytes(12).toString('hex'));
    const shard = this.#shardOf(key);
    try {
      const file = await open(draft, 'wx');
      try {
        await file.writeFile(bytes);
        await file.utimes(usedAt / 1000, usedAt / 1000);
        if (this.#fsync !== 'never') await file.sync();
      } finally {
        await file.close();
      }
      if (!this.#shards.has(shard)) await mkdir(shard, { recursive: true });
      this.#shards.add(shard);
      await rename(draft, this.pathOf(key));
    } catch (error) {
      await rm(draft, { force: true }).catch(() => {});
      throw error;
    }
    if (this.#fsync === 'file-and-folder') await syncFolder(shard);
  }

  /** Remembers when a page was used. What cannot be remembered is forgotten: it only orders what goes first. */
  async touch(key: string, usedAt: number): Promise<void> {
    await utimes(this.pathOf(key), usedAt / 1000, usedAt / 1000).catch(() => {});
  }

  async remove(key: string): Promise<void> {
    await rm(this.pathOf(key), { force: true });
  }

  #shardOf(key: string): string {
    const sum = crc32c(new TextEncoder().encode(key)) & 255;
    return join(this.root, sum.toString(16).padStart(2, '0'));
  }
}

/** What the file system calls an error. */
export function codeOf(error: unknown): string | undefined {
  return (error as { code?: string }).code;
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return [];
    throw error;
  }
}

async function syncFolder(folder: string): Promise<void> {
  // Windows opens no folders, and needs none of this.
  const handle = await open(folder, 'r').catch(() => undefined);
  try {
    await handle?.sync();
  } finally {
    await handle?.close();
  }
}
