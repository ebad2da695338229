/**
 * Bytes on their way to a colder tier: read from the device, or handed to a store, and not there yet. Bounded, because until
 * they land they take memory that no tier counts.
 */
export class StagingBudget {
  /** Bytes that may be under way at a time. */
  readonly limit: number;
  #inFlight = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Bytes that may still set out. */
  get free(): number {
    return this.limit - this.#inFlight;
  }

  /** The caller has seen that so many are free. */
  take(bytes: number): void {
    this.#inFlight += bytes;
  }

  giveBack(bytes: number): void {
    this.#inFlight -= bytes;
  }
}
