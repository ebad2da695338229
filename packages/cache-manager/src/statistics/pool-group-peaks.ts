import type { StorageManager } from '../storage/storage-manager.ts';

/** The most of each, over some time, in slots of one pool group. */
export interface PoolGroupPeaks {
  /** Free slots and pages that nobody holds. */
  readonly available: number;
  /** Slots that nobody could have. */
  readonly unavailable: number;
  /** Pages that nobody holds. */
  readonly evictable: number;
}

/** Keeps the peaks of the pool groups of the device, sampled at the end of every call. */
export class PeakGauge {
  readonly #storage: StorageManager;
  readonly #available: Int32Array;
  readonly #unavailable: Int32Array;
  readonly #evictable: Int32Array;

  constructor(storage: StorageManager) {
    this.#storage = storage;
    const count = storage.poolGroups.length;
    this.#available = new Int32Array(count);
    this.#unavailable = new Int32Array(count);
    this.#evictable = new Int32Array(count);
    this.sample();
  }

  /** Takes the present numbers into account. No garbage. */
  sample(): void {
    for (let group = 0; group < this.#available.length; group++) {
      const evictable = this.#storage.evictable(group);
      const available = evictable + this.#storage.free(group);
      const unavailable = this.#storage.unavailable(group);
      if (evictable > this.#evictable[group]) this.#evictable[group] = evictable;
      if (available > this.#available[group]) this.#available[group] = available;
      if (unavailable > this.#unavailable[group]) this.#unavailable[group] = unavailable;
    }
  }

  /** The peaks since the last time, by pool group; from now on they count from the present. */
  take(): PoolGroupPeaks[] {
    this.sample();
    const peaks = Array.from(this.#available, (available, group) => ({
      available,
      unavailable: this.#unavailable[group],
      evictable: this.#evictable[group],
    }));
    this.#available.fill(0);
    this.#unavailable.fill(0);
    this.#evictable.fill(0);
    this.sample();
    return peaks;
  }
}
