import type { OpfsDirectory, OpfsHandle } from './opfs-files.ts';
import { Segment } from './segment.ts';

/** The 1 is the version of the form of records. */
const NAME = /^segment-1-(\d{12})\.pages$/;

/** Milliseconds between two attempts to open a file that somebody else has open. */
const RETRY_MS = 20;

/**
 * The files of a store, in a directory of its own: `segment-1-<12 digits>.pages`. Numbers rise, and none is given twice. What bears another
 * name is left alone.
 */
export class SegmentFolder {
  readonly #directory: OpfsDirectory;
  readonly #until: number;
  #nextNumber = 0;

  /**
   * @param until of `performance.now()`: so long a file that is still open is waited for. The browser closes those of a worker that has ended, but
   * not at once.
   */
  constructor(directory: OpfsDirectory, until: number) {
    this.#directory = directory;
    this.#until = until;
  }

  /** All segments, from the oldest on. Rejects with what the browser says, with none left open. */
  async openAll(): Promise<Segment[]> {
    const names: string[] = [];
    for await (const name of this.#directory.keys()) if (NAME.test(name)) names.push(name);
    const segments: Segment[] = [];
    try {
      for (const name of names.sort()) {
        segments.push(await this.#open(name));
        this.#nextNumber = Number(NAME.exec(name)?.[1]) + 1;
      }
      return segments;
    } catch (error) {
      for (const segment of segments) segment.close();
      throw error;
    }
  }

  create(): Promise<Segment> {
    return this.#open(`segment-1-${String(this.#nextNumber++).padStart(12, '0')}.pages`);
  }

  /** Removes the file of a segment that was closed. What cannot be removed is found again when the folder is opened, and goes then. */
  async remove(segment: Segment): Promise<void> {
    await this.#directory.removeEntry(segment.name).catch(() => {});
  }

  async #open(name: string): Promise<Segment> {
    const file = await this.#directory.getFileHandle(name, { create: true });
    for (;;) {
      try {
        // `SegmentFolder` is made where there is one.
        return new Segment(name, (await file.createSyncAccessHandle?.()) as OpfsHandle);
      } catch (error) {
        if ((error as { name?: string }).name !== 'NoModificationAllowedError' || performance.now() > this.#until) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }
}
