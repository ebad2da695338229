/**
 * Where conversations stand before they take their next token. Open, they pass at once; stepping, each passes once for every `step`; and
 * while something has the engine to itself, nobody passes.
 */
export class Gate {
  #stepping = false;
  #inside = 0;
  readonly #steppers = new Set<() => void>();
  /** Settles when whoever is alone is done. */
  #alone: Promise<void> | null = null;
  #emptied: (() => void) | null = null;

  /** Whether everybody waits for a `step` from now on. */
  setStepping(stepping: boolean): void {
    this.#stepping = stepping;
    if (!stepping) this.step();
  }

  /** Lets everybody who waits take one token. */
  step(): void {
    for (const pass of this.#steppers) pass();
  }

  /** Runs `work` behind the gate. Whoever gives up need not wait for a step: `work` has to look at the signal by itself. */
  async through<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#stepping) await this.#nextStep(signal);
    while (this.#alone !== null) await this.#alone;
    this.#inside++;
    try {
      return await work();
    } finally {
      if (--this.#inside === 0) this.#emptied?.();
    }
  }

  /** Runs `work` while nobody is behind the gate, and nobody comes in. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    while (this.#alone !== null) await this.#alone;
    let open = () => {};
    this.#alone = new Promise((resolve) => {
      open = resolve;
    });
    try {
      if (this.#inside > 0) {
        await new Promise<void>((resolve) => {
          this.#emptied = resolve;
        });
      }
      return await work();
    } finally {
      this.#emptied = null;
      this.#alone = null;
      open();
    }
  }

  #nextStep(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const pass = () => {
        this.#steppers.delete(pass);
        signal.removeEventListener('abort', pass);
        resolve();
      };
      this.#steppers.add(pass);
      signal.addEventListener('abort', pass);
    });
  }
}
