import { DISPOSE } from '../dispose.ts';
import type { PinTable } from './pin-table.ts';

/** How a prefix is pinned. */
export interface PinOptions {
  /** Milliseconds after which the pin releases itself. Left out: it stays until `release`. */
  durationMs?: number;
}

/** A prefix whose pages stay where they are, whoever needs room. Made by `KvCacheManager.pin`. */
export class PrefixPin {
  /** Tokens of the prefix: a request on them matches at least so many. 0 when nothing of them was published. */
  readonly numTokens: number;
  readonly #pins: PinTable;
  readonly #pin: number;
  readonly #check: () => void;

  /** @internal Prefixes are pinned by their manager. */
  constructor(options: { numTokens: number; pins: PinTable; pin: number; check: () => void }) {
    this.numTokens = options.numTokens;
    this.#pins = options.pins;
    this.#pin = options.pin;
    this.#check = options.check;
  }

  /** Whether the pages are still held: neither released nor past their time. */
  get isHeld(): boolean {
    this.#pins.expire();
    return this.#pins.has(this.#pin);
  }

  /** Lets the pages go: they may be evicted again. Does nothing the second time. */
  release(): void {
    this.#pins.release(this.#pin);
    this.#check();
  }

  [DISPOSE](): void {
    this.release();
  }
}
