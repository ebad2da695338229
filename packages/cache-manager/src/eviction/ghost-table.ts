const WAYS = 4;

/**
 * A fixed number of content hashes, each with one small tag: what was there, and is perhaps no more. A new entry takes the place
 * of the oldest of the four that it could stand in, so the table never grows and forgets by itself.
 */
export class GhostTable {
  readonly #hashes: Int32Array;
  readonly #tags: Uint8Array;
  /** When the entry was made; 0 where there is none. */
  readonly #ages: Uint32Array;
  readonly #mask: number;
  #clock = 1;

  /** @param entries a power of two, at least 4 */
  constructor(entries: number) {
    this.#hashes = new Int32Array(entries);
    this.#tags = new Uint8Array(entries);
    this.#ages = new Uint32Array(entries);
    this.#mask = entries / WAYS - 1;
  }

  /** Entries there is room for. */
  get size(): number {
    return this.#hashes.length;
  }

  /** Remembers a hash, or gives a known one a new tag. Returns whether it was new. */
  put(hash: number, tag: number): boolean {
    const begin = this.#begin(hash);
    let at = begin;
    for (let way = begin; way < begin + WAYS; way++) {
      if (this.#ages[way] !== 0 && this.#hashes[way] === hash) {
        this.#tags[way] = tag;
        this.#ages[way] = this.#clock++;
        return false;
      }
      if (this.#ages[way] < this.#ages[at]) at = way;
    }
    this.#hashes[at] = hash;
    this.#tags[at] = tag;
    this.#ages[at] = this.#clock++;
    return true;
  }

  /** Forgets a hash and returns its tag; -1 when it is not known. */
  take(hash: number): number {
    const begin = this.#begin(hash);
    for (let way = begin; way < begin + WAYS; way++) {
      if (this.#ages[way] === 0 || this.#hashes[way] !== hash) continue;
      this.#ages[way] = 0;
      return this.#tags[way];
    }
    return -1;
  }

  #begin(hash: number): number {
    return ((Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 8) & this.#mask) * WAYS;
  }
}
