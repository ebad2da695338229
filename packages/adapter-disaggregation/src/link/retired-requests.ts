/** Requests that are remembered; those that were given up longest ago are forgotten first. */
const MOST_REQUESTS = 1 << 14;

/** Up to which generation of a request nothing is of use any more. Bounded, whoever gives up how many. */
export class RetiredRequests {
  readonly #upTo = new Map<string, number>();

  add(request: string, generation: number): void {
    const upTo = Math.max(generation, this.#upTo.get(request) ?? -1);
    this.#upTo.delete(request);
    this.#upTo.set(request, upTo);
    if (this.#upTo.size > MOST_REQUESTS) this.#upTo.delete(this.#upTo.keys().next().value as string);
  }

  has(request: string, generation: number): boolean {
    return generation <= (this.#upTo.get(request) ?? -1);
  }
}
