export interface BackoffOptions {
  /** Milliseconds before the second try; doubles with each further one. Default 50. */
  readonly minMs?: number;
  /** The longest wait in milliseconds. Default 2,000. */
  readonly maxMs?: number;
}

/** How long to leave a server alone that failed: nothing after a first failure, then twice as long each time, with jitter. */
export class Backoff {
  readonly minMs: number;
  readonly maxMs: number;
  #failures = 0;

  constructor({ minMs = 50, maxMs = 2000 }: BackoffOptions = {}) {
    this.minMs = minMs;
    this.maxMs = maxMs;
  }

  /** Counts a failure. @returns milliseconds to wait, of which half is chance, so that many clients do not come back at once */
  next(): number {
    const failures = this.#failures++;
    if (failures === 0) return 0;
    return Math.min(this.maxMs, this.minMs * 2 ** (failures - 1)) * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.#failures = 0;
  }
}
