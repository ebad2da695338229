import type { Clock } from '../clock.ts';

/** Lets so many bytes be under way at a time. Whoever waits is let in in the order of the calls. */
export class ByteGate {
  readonly #limit: number;
  #inside = 0;
  readonly #waiting: { bytes: number; enter: () => void }[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Enters without waiting, or answers false. */
  tryEnter(bytes: number): boolean {
    if (this.#waiting.length > 0 || !this.#fits(bytes)) return false;
    this.#inside += bytes;
    return true;
  }

  /** Settles when the bytes are in. What is larger than the limit goes in alone. */
  enter(bytes: number): Promise<void> {
    if (this.#waiting.length === 0 && (this.#fits(bytes) || this.#inside === 0)) {
      this.#inside += bytes;
      return Promise.resolve();
    }
    return new Promise((enter) => this.#waiting.push({ bytes, enter }));
  }

  leave(bytes: number): void {
    this.#inside -= bytes;
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (!this.#fits(next.bytes) && this.#inside > 0) return;
      this.#waiting.shift();
      this.#inside += next.bytes;
      next.enter();
    }
  }

  #fits(bytes: number): boolean {
    return this.#inside + bytes <= this.#limit;
  }
}

/** Spreads bytes over time, at most so many in a second; what was not used in the second before is lost. */
export class ByteRate {
  readonly #perSecond: number;
  readonly #clock: Clock;
  /** When all bytes that were let through are paid for. */
  #paidAt = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number, clock: Clock) {
    this.#perSecond = perSecond;
    this.#clock = clock;
  }

  /** Settles when it is the bytes' turn, or the signal is aborted. */
  async pass(bytes: number, signal: AbortSignal): Promise<void> {
    if (!Number.isFinite(this.#perSecond)) return;
    const now = this.#clock.now();
    const begin = Math.max(this.#paidAt, now - 1_000);
    this.#paidAt = begin + (bytes / this.#perSecond) * 1_000;
    const wait = this.#paidAt - now;
    if (wait > 0) await this.#clock.wait(wait, signal);
  }
}
