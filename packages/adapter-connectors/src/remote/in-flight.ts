export interface InFlightLimits {
  /** Requests that wait for an answer at the same time, at least 1. */
  readonly maxRequests: number;
  /** Bytes of pages that those move, at least 1. A page that is larger goes alone. */
  readonly maxBytes: number;
}

interface Waiting {
  readonly bytes: number;
  readonly enter: (entered: boolean) => void;
}

/** Bounds what is under way to a server, over all calls of a store. First come, first served. */
export class InFlight {
  readonly #limits: InFlightLimits;
  readonly #waiting = new Set<Waiting>();
  #requests = 0;
  #bytes = 0;

  constructor(limits: InFlightLimits) {
    this.#limits = limits;
  }

  /** Requests and bytes that are under way. */
  get load(): { readonly requests: number; readonly bytes: number } {
    return { requests: this.#requests, bytes: this.#bytes };
  }

  /** @returns false when the signal came first; after true the caller owes a `leave` of as many bytes */
  async enter(bytes: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (this.#waiting.size === 0 && this.#hasRoom(bytes)) {
      this.#add(bytes);
      return true;
    }
    return new Promise((resolve) => {
      const waiting: Waiting = {
        bytes,
        enter: (entered) => {
          signal.removeEventListener('abort', giveUp);
          this.#waiting.delete(waiting);
          resolve(entered);
        },
      };
      const giveUp = () => {
        waiting.enter(false);
        this.#admit();
      };
      signal.addEventListener('abort', giveUp);
      this.#waiting.add(waiting);
    });
  }

  leave(bytes: number): void {
    this.#requests--;
    this.#bytes -= bytes;
    this.#admit();
  }

  #admit(): void {
    for (const waiting of this.#waiting) {
      if (!this.#hasRoom(waiting.bytes)) return;
      this.#add(waiting.bytes);
      waiting.enter(true);
    }
  }

  #hasRoom(bytes: number): boolean {
    const { maxRequests, maxBytes } = this.#limits;
    return this.#requests === 0 || (this.#requests < maxRequests && this.#bytes + bytes <= maxBytes);
  }

  #add(bytes: number): void {
    this.#requests++;
    this.#bytes += bytes;
  }
}
