import type { TraceRequest } from '@bufferwise-internal/request-traces';
import type { EvictablePages, EvictionPolicy } from '../../src/index.ts';
import { chainHash, hashText } from '../../src/tree/token-hash.ts';
import { BLOCK_TOKENS } from './replay-config.ts';

/**
 * When the blocks of a workload are asked for, known beforehand: what no policy of this world has. Blocks are told apart by the
 * hash of their path, which is how the manager names them to a policy; a collision of 32 bits now and then does no harm to a bound.
 */
export class Foresight {
  /** The request that is being admitted, by position in the workload. */
  now = 0;
  readonly #ids = new Map<number, number>();
  /** The uses of block i are `#uses[#begins[i] … #begins[i + 1])`, ascending. */
  readonly #begins: Int32Array;
  readonly #uses: Int32Array;

  constructor(requests: readonly TraceRequest[]) {
    const blocksOfUses: number[] = [];
    const requestsOfUses: number[] = [];
    requests.forEach((request, index) => {
      const prompt = request.prompt();
      let path = hashText('/');
      for (let end = BLOCK_TOKENS; end <= prompt.length; end += BLOCK_TOKENS) {
        path = chainHash(path, prompt[end - BLOCK_TOKENS], prompt[end - 1]);
        let id = this.#ids.get(path);
        if (id === undefined) {
          id = this.#ids.size;
          this.#ids.set(path, id);
        }
        blocksOfUses.push(id);
        requestsOfUses.push(index);
      }
    });
    this.#begins = new Int32Array(this.#ids.size + 1);
    for (const id of blocksOfUses) this.#begins[id + 1]++;
    for (let id = 0; id < this.#ids.size; id++) this.#begins[id + 1] += this.#begins[id];
    const next = this.#begins.slice();
    this.#uses = new Int32Array(blocksOfUses.length);
    blocksOfUses.forEach((id, i) => {
      this.#uses[next[id]++] = requestsOfUses[i];
    });
  }

  /** The next request behind `now` that has the block in its prompt; infinite when none has. */
  nextUse(contentHash: number): number {
    const id = this.#ids.get(contentHash);
    if (id === undefined) return Number.POSITIVE_INFINITY;
    let low = this.#begins[id];
    let high = this.#begins[id + 1];
    const end = high;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#uses[middle] <= this.now) low = middle + 1;
      else high = middle;
    }
    return low < end ? this.#uses[low] : Number.POSITIVE_INFINITY;
  }
}

/** Belady's rule: what is asked for last leaves first, the deeper block of a path before the others. For one group of full attention. */
export class ForesightQueue implements EvictionPolicy {
  readonly #pages: EvictablePages;
  readonly #foresight: Foresight;
  /** A binary heap of pages, and where each of them is in it. */
  readonly #heap: number[] = [];
  readonly #places: number[] = [];
  readonly #uses: number[] = [];
  readonly #depths: number[] = [];

  constructor(pages: EvictablePages, foresight: Foresight) {
    this.#pages = pages;
    this.#foresight = foresight;
  }

  get count(): number {
    return this.#heap.length;
  }

  push(page: number): void {
    this.#uses[page] = this.#foresight.nextUse(this.#pages.contentHashOf(page));
    this.#depths[page] = this.#pages.depthOf(page);
    this.#heap.push(page);
    this.#rise(this.#heap.length - 1, page);
  }

  remove(page: number): void {
    const place = this.#places[page];
    const last = this.#heap.pop() as number;
    if (last === page) return;
    this.#sink(place, last);
    this.#rise(this.#places[last], last);
  }

  first(): number {
    return this.#heap[0] ?? -1;
  }

  [Symbol.iterator](): Iterator<number> {
    return this.#heap[Symbol.iterator]();
  }

  #rise(from: number, page: number): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      if (!this.#leavesBefore(page, this.#heap[above])) break;
      this.#put(place, this.#heap[above]);
      place = above;
    }
    this.#put(place, page);
  }

  #sink(from: number, page: number): void {
    let place = from;
    for (;;) {
      let below = place * 2 + 1;
      if (below >= this.#heap.length) break;
      if (below + 1 < this.#heap.length && this.#leavesBefore(this.#heap[below + 1], this.#heap[below])) below++;
      if (!this.#leavesBefore(this.#heap[below], page)) break;
      this.#put(place, this.#heap[below]);
      place = below;
    }
    this.#put(place, page);
  }

  #put(place: number, page: number): void {
    this.#heap[place] = page;
    this.#places[page] = place;
  }

  #leavesBefore(page: number, other: number): boolean {
    const [use, otherUse] = [this.#uses[page], this.#uses[other]];
    return use > otherUse || (use === otherUse && this.#depths[page] > this.#depths[other]);
  }
}
