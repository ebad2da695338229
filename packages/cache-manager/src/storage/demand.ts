import type { StorageManager } from './storage-manager.ts';

/** Slots that one step wants and gives back, by pool group. Filled and judged before anything changes. */
export class Demand {
  readonly #storage: StorageManager;
  readonly #wanted: Int32Array;
  readonly #returned: Int32Array;

  constructor(storage: StorageManager) {
    this.#storage = storage;
    this.#wanted = new Int32Array(storage.poolGroups.length);
    this.#returned = new Int32Array(storage.poolGroups.length);
  }

  reset(): void {
    this.#storage.expire();
    this.#wanted.fill(0);
    this.#returned.fill(0);
  }

  want(poolGroup: number, count: number): void {
    this.#wanted[poolGroup] += count;
  }

  /** Slots that the step will set free, or leave to eviction, before it takes any. */
  giveBack(poolGroup: number, count: number): void {
    this.#returned[poolGroup] += count;
  }

  /** Whether free, evictable and returned slots cover what is wanted everywhere. */
  fits(): boolean {
    for (let group = 0; group < this.#wanted.length; group++) {
      const available = this.#storage.free(group) + this.#storage.evictable(group) + this.#returned[group];
      if (this.#wanted[group] > available) return false;
    }
    return true;
  }

  /** Whether some growing pool group is used beyond `maxUtil` already, the returned slots not counted. */
  isSaturated(maxUtil: number): boolean {
    return this.#storage.poolGroups.some(
      ({ grows, slots }, group) => grows && this.#storage.unavailable(group) - this.#returned[group] > maxUtil * slots.slots,
    );
  }

  /** Evicts until every pool group has the wanted slots free. Only after `fits`, with the returned slots given back. */
  makeRoom(): void {
    for (let group = 0; group < this.#wanted.length; group++) this.#storage.makeRoom(group, this.#wanted[group]);
  }
}
