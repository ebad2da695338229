import type { TierStore } from '@bufferwise/cache-manager';
import type { DiskTraffic } from './replay-result.ts';

/**
 * A disk that remembers lengths. Pages of a device without bytes are read as zeros, so zeros are what a page was and will be. Counts what
 * goes there and comes back.
 */
export class NullTierStore implements TierStore {
  readonly #lengths = new Map<string, number>();
  readonly #traffic = { writes: 0, writtenBytes: 0, reads: 0, readBytes: 0 };

  get traffic(): DiskTraffic {
    return this.#traffic;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    this.#lengths.set(key, bytes.length);
    this.#traffic.writes++;
    this.#traffic.writtenBytes += bytes.length;
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    const length = this.#lengths.get(key);
    if (length === undefined) return undefined;
    this.#traffic.reads++;
    this.#traffic.readBytes += length;
    return new Uint8Array(length);
  }

  async delete(key: string): Promise<void> {
    this.#lengths.delete(key);
  }

  async list(): Promise<string[]> {
    return [...this.#lengths.keys()];
  }

  async close(): Promise<void> {
    this.#lengths.clear();
  }
}
