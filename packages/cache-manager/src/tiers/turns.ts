/**
 * One after the other: what waits for memory of several tiers does so alone, or two could each hold what the other needs.
 */
export class Turns {
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  get any(): boolean {
    return this.#waiting > 0;
  }

  /** Calls `work` once everything handed in before has ended. Settles as it does. */
  take<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting++;
    const result = this.#last.then(work);
    const ended = () => {
      this.#waiting--;
    };
    this.#last = result.then(ended, ended);
    return result;
  }

  /** Resolves when everything handed in so far has ended. */
  async ended(): Promise<void> {
    await this.#last;
  }
}
