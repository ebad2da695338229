/** Bytes that may be on their way, and who waits for room among them. */
export class SendWindow {
  readonly #size: number;
  #inFlight = 0;
  #waiting = new Set<() => void>();

  constructor(size: number) {
    this.#size = size;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Settles when there is room for some bytes, when it is over with them, or when the signal is aborted. Takes nothing. */
  async room(bytes: number, closing: AbortSignal, isOver: () => boolean): Promise<void> {
    while (!isOver() && !closing.aborted && this.#inFlight + bytes > this.#size) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          closing.removeEventListener('abort', wake);
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
        closing.addEventListener('abort', wake);
      });
    }
  }

  take(bytes: number): void {
    this.#inFlight += bytes;
  }

  /** The other side has room again. What it never took cannot come back. */
  giveBack(bytes: number): void {
    this.#inFlight = Math.max(0, this.#inFlight - bytes);
    this.wake();
  }

  /** Has those who wait look again. */
  wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** Nothing is on its way any more. */
  end(): void {
    this.#inFlight = 0;
    this.wake();
  }
}
