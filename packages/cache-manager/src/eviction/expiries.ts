/**
 * Things that are due at some time, by small integer: a binary heap, first due first, in the order of `add` where times are
 * equal. What was forgotten meanwhile stays inside until its time comes, or until half of all is such. No garbage but growth.
 */
export class Expiries {
  /** Whether an entry still counts: its item is due exactly then. */
  readonly #isDue: (item: number, time: number) => boolean;
  #times = new Float64Array(16);
  #items = new Int32Array(16);
  #orders = new Float64Array(16);
  #count = 0;
  #added = 0;
  /** Entries that the next cleaning waits for. */
  #cleanAt = 64;

  constructor(isDue: (item: number, time: number) => boolean) {
    this.#isDue = isDue;
  }

  /** When the first is due; infinite when nothing is. */
  get next(): number {
    return this.#count === 0 ? Number.POSITIVE_INFINITY : this.#times[0];
  }

  /** Entries, those included that do not count any more. */
  get size(): number {
    return this.#count;
  }

  add(item: number, time: number): void {
    if (this.#count >= this.#cleanAt) this.#clean();
    this.#put(item, time, this.#added++);
  }

  /** Takes the first item that is due at `now`; -1 when none is. */
  take(now: number): number {
    while (this.#count > 0 && this.#times[0] <= now) {
      const item = this.#items[0];
      const time = this.#times[0];
      this.#removeFirst();
      if (this.#isDue(item, time)) return item;
    }
    return -1;
  }

  #put(item: number, time: number, order: number): void {
    if (this.#count === this.#times.length) this.#grow();
    let at = this.#count++;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!this.#isBefore(time, order, above)) break;
      this.#move(above, at);
      at = above;
    }
    this.#set(at, item, time, order);
  }

  #removeFirst(): void {
    const last = --this.#count;
    const item = this.#items[last];
    const time = this.#times[last];
    const order = this.#orders[last];
    let at = 0;
    for (;;) {
      let below = at * 2 + 1;
      if (below >= last) break;
      if (below + 1 < last && this.#isBefore(this.#times[below + 1], this.#orders[below + 1], below)) below++;
      if (!this.#isBefore(this.#times[below], this.#orders[below], -1, time, order)) break;
      this.#move(below, at);
      at = below;
    }
    this.#set(at, item, time, order);
  }

  #isBefore(
    time: number,
    order: number,
    other: number,
    otherTime = this.#times[other],
    otherOrder = this.#orders[other],
  ): boolean {
    return time < otherTime || (time === otherTime && order < otherOrder);
  }

  #move(from: number, to: number): void {
    this.#set(to, this.#items[from], this.#times[from], this.#orders[from]);
  }

  #set(at: number, item: number, time: number, order: number): void {
    this.#items[at] = item;
    this.#times[at] = time;
    this.#orders[at] = order;
  }

  /** Drops what does not count any more; the next cleaning waits for twice what is left. */
  #clean(): void {
    const count = this.#count;
    const items = this.#items.slice(0, count);
    const times = this.#times.slice(0, count);
    const orders = this.#orders.slice(0, count);
    this.#count = 0;
    for (let i = 0; i < count; i++) if (this.#isDue(items[i], times[i])) this.#put(items[i], times[i], orders[i]);
    this.#cleanAt = Math.max(64, this.#count * 2);
  }

  #grow(): void {
    const length = this.#times.length * 2;
    const times = new Float64Array(length);
    const items = new Int32Array(length);
    const orders = new Float64Array(length);
    times.set(this.#times);
    items.set(this.#items);
    orders.set(this.#orders);
    this.#times = times;
    this.#items = items;
    this.#orders = orders;
  }
}
