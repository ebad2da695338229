import type { MemoryFrame } from '../protocol/memory-frame.ts';

/** Milliseconds for which a page is shown as fresh. */
const FRESH_MS = 420;

/** Remembers when the page in each slot was last another one. */
export class Freshness {
  #pages: Int32Array = new Int32Array(0);
  #until = new Float64Array(0);
  #latest = 0;

  /** Takes another frame in. Slots of a first frame, or of one of another shape, are not fresh. */
  take(frame: MemoryFrame, now: number): void {
    const { page, numSlots } = frame;
    if (this.#pages.length === numSlots) {
      for (let slot = 0; slot < numSlots; slot++) {
        if (page[slot] === this.#pages[slot] || page[slot] < 0) continue;
        this.#until[slot] = now + FRESH_MS;
        this.#latest = now + FRESH_MS;
      }
    } else {
      this.#until = new Float64Array(numSlots);
      this.#latest = 0;
    }
    this.#pages = page;
  }

  get until(): Float64Array {
    return this.#until;
  }

  /** Whether something is fresh still. */
  isAny(now: number): boolean {
    return now < this.#latest;
  }
}
