/** Content hashes that are remembered beyond eviction, at most; of large pools a sample is. */
const MAX_ENTRIES = 1 << 14;
const WAYS = 4;

/** Steps of growth that are told apart. */
export const NUM_STEPS = 8;

/**
 * What a pool group of a tier would have saved, had it been larger.
 *
 * Pages that leave to make room are remembered by content hash, with the number of pages that had left before. A page that is
 * asked for again after d others have left would have been kept by d more slots, or so: what its absence costs is counted for
 * that growth. The table has a fixed size and forgets by itself. No garbage.
 */
export class NeedGauge {
  /** What came back, by the step of growth that would have kept it: costs, in the unit of whoever tells them. */
  readonly gains = new Float64Array(NUM_STEPS);
  /** Variance of each of them: what came back for one request came back together. */
  readonly variances = new Float64Array(NUM_STEPS);
  /** Pages that left to make room. */
  evicted = 0;
  /** The same, and those that were lost with others. */
  gone = 0;
  /** Pages of the sample that were asked for again. */
  returned = 0;
  /** Part of `gains` for the request under way. */
  readonly #current = new Float64Array(NUM_STEPS);
  #hashes = new Int32Array(0);
  /** `evicted` when the page left, counted from the beginning; 0 where there is none. */
  #stamps = new Uint32Array(0);
  #clock = 0;
  #stepSlots = 1;
  #sampleMask = 0;

  /**
   * Begins anew: nothing has left.
   *
   * @param stepSlots slots of one step of growth, above 0
   */
  restart(stepSlots: number): void {
    this.gains.fill(0);
    this.variances.fill(0);
    this.#current.fill(0);
    this.evicted = 0;
    this.gone = 0;
    this.returned = 0;
    this.#clock = 0;
    this.#stepSlots = stepSlots;
    const horizon = stepSlots * NUM_STEPS;
    let entries = 64;
    while (entries < MAX_ENTRIES && entries < horizon) entries *= 2;
    let shareOf = 1;
    while (entries * shareOf < horizon) shareOf *= 2;
    this.#sampleMask = shareOf - 1;
    this.#hashes = new Int32Array(entries);
    this.#stamps = new Uint32Array(entries);
  }

  /** Halves all counts, so that what was long ago fades. */
  fade(): void {
    for (let step = 0; step < NUM_STEPS; step++) {
      this.gains[step] /= 2;
      this.variances[step] /= 2;
    }
    this.evicted /= 2;
    this.gone /= 2;
    this.returned /= 2;
  }

  /** What is missed from now on is for another request. */
  nextRequest(): void {
    if (this.#clock === 0) return;
    for (let step = 0; step < NUM_STEPS; step++) {
      const cost = this.#current[step];
      if (cost === 0) continue;
      this.gains[step] += cost;
      this.variances[step] += cost * cost;
      this.#current[step] = 0;
    }
  }

  /** A page leaves to make room. */
  left(hash: number): void {
    this.#clock++;
    this.evicted++;
    if ((hash & this.#sampleMask) !== 0) return;
    const begin = this.#begin(hash);
    let at = begin;
    for (let way = begin; way < begin + WAYS; way++) {
      if (this.#hashes[way] === hash) {
        at = way;
        break;
      }
      if (this.#stamps[way] < this.#stamps[at]) at = way;
    }
    this.#hashes[at] = hash;
    this.#stamps[at] = this.#clock;
  }

  /** Somebody would have used a page, had it been there. Says whether it was, as far as is remembered; asking forgets it. */
  missed(hash: number, cost: number): boolean {
    if ((hash & this.#sampleMask) !== 0 || this.#clock === 0) return false;
    const begin = this.#begin(hash);
    for (let way = begin; way < begin + WAYS; way++) {
      if (this.#stamps[way] === 0 || this.#hashes[way] !== hash) continue;
      const step = Math.floor((this.#clock - this.#stamps[way]) / this.#stepSlots);
      this.#stamps[way] = 0;
      if (step < NUM_STEPS) this.#current[step] += cost * (this.#sampleMask + 1);
      this.returned++;
      return true;
    }
    return false;
  }

  #begin(hash: number): number {
    return ((Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 8) & (this.#hashes.length / WAYS - 1)) * WAYS;
  }
}
