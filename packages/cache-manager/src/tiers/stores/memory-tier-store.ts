import type { TierStore } from '../../ports/tier-store.ts';

/** A disk tier that is none: pages in a map. For tests, and the reference for other stores. */
export class MemoryTierStore implements TierStore {
  readonly #values = new Map<string, Uint8Array>();

  /** Bytes stored now. */
  get storedBytes(): number {
    let bytes = 0;
    for (const value of this.#values.values()) bytes += value.length;
    return bytes;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    this.#values.set(key, bytes.slice());
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    return this.#values.get(key)?.slice();
  }

  async delete(key: string): Promise<void> {
    this.#values.delete(key);
  }

  async list(): Promise<string[]> {
    return [...this.#values.keys()];
  }

  async close(): Promise<void> {
    this.#values.clear();
  }
}
