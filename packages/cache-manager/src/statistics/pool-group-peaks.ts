import type { TierGroup } from '../storage/tier.ts';

/** The most of each, over some time, in slots of one pool group. */
export interface PoolGroupPeaks {
  /** Free slots and pages that may leave the tier. */
  readonly available: number;
  /** Slots that nobody could have. */
  readonly unavailable: number;
  /** Pages that may leave the tier; see `PoolGroupStatistics`. */
  readonly evictable: number;
}

/** Keeps the peaks of the pool groups of a tier, sampled at the end of every call. */
export class PeakGauge {
  readonly #groups: readonly TierGroup[];
  readonly #available: Int32Array;
  readonly #unavailable: Int32Array;
  readonly #evictable: Int32Array;

  constructor(groups: readonly TierGroup[]) {
    this.#groups = groups;
    const count = groups.length;
    this.#available = new Int32Array(count);
    this.#unavailable = new Int32Array(count);
    this.#evictable = new Int32Array(count);
    this.sample();
  }

  /** Takes the present numbers into account. No garbage. */
  sample(): void {
    for (let group = 0; group < this.#available.length; group++) {
      const { slots, numLeaving: evictable } = this.#groups[group];
      const available = evictable + slots.free;
      const unavailable = slots.slots - available;
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
