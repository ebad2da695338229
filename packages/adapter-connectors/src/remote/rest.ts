import { Backoff, type BackoffOptions } from './backoff.ts';

/** Whether a server that failed is to be left alone for now. */
export class Rest {
  readonly #backoff: Backoff;
  #until = 0;

  constructor(options?: BackoffOptions) {
    this.#backoff = new Backoff(options);
  }

  get over(): boolean {
    return performance.now() >= this.#until;
  }

  /** Calls that fail during a rest were begun before it and say nothing new. */
  failed(): void {
    if (this.over) this.#until = performance.now() + this.#backoff.next();
  }

  succeeded(): void {
    this.#backoff.reset();
  }
}
