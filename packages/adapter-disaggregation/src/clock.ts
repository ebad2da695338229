/** Time as a transport sees it, so that tests need not wait for it. */
export interface Clock {
  /** Milliseconds from some moment on; never goes back. */
  now(): number;
  /** Calls once, `delayMs` from now, unless the returned function was called before. */
  after(delayMs: number, call: () => void): () => void;
}

/** The clock of the platform. Its timers keep no Node process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(delayMs, call) {
    const timer: unknown = setTimeout(call, delayMs);
    if (typeof timer === 'object' && timer !== null && 'unref' in timer) (timer as { unref(): void }).unref();
    return () => clearTimeout(timer as number);
  },
};
