import type { PutOutcome } from '@bufferwise/adapter-kit';

/** The counts that every page store keeps, by what happened. */
export class PageCounts {
  #hits = 0;
  #misses = 0;
  #damaged = 0;
  #stored = 0;
  #refused = 0;
  #bytesRead = 0;
  #bytesWritten = 0;

  hit(bytes: Uint8Array): Uint8Array {
    this.#hits++;
    this.#bytesRead += bytes.length;
    return bytes;
  }

  miss(): null {
    this.#misses++;
    return null;
  }

  damaged(): null {
    this.#damaged++;
    return this.miss();
  }

  stored(bytes: Uint8Array): PutOutcome {
    this.#stored++;
    this.#bytesWritten += bytes.length;
    return { status: 'stored' };
  }

  refused(reason: 'full' | 'too-large'): PutOutcome {
    this.#refused++;
    return { status: 'refused', reason };
  }

  /** For a store that knows nothing of the room on its medium. */
  statistics() {
    return {
      hits: this.#hits,
      misses: this.#misses,
      damaged: this.#damaged,
      stored: this.#stored,
      refused: this.#refused,
      bytesRead: this.#bytesRead,
      bytesWritten: this.#bytesWritten,
      usedBytes: null,
      quotaBytes: null,
    } as const;
  }
}
