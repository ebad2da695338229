/** Time for what waits and what limits itself. */
export interface Clock {
  /** Milliseconds, never falling. */
  now(): number;
  /** Settles after so many milliseconds, or at once when the signal is aborted. Never rejects. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The time of this machine. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wait: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal?.addEventListener('abort', end);
    }),
};

/**
 * The answer of a call that may take so long, or undefined when it takes longer, rejects, or `stopped` is aborted first. The call is
 * told by its signal; whatever it answers later is nobody's.
 */
export async function inTime<T>(
  clock: Clock,
  ms: number,
  stopped: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const ending = new AbortController();
  const stop = () => ending.abort(stopped.reason);
  if (stopped.aborted) stop();
  stopped.addEventListener('abort', stop);
  const late = clock.wait(ms, ending.signal).then(() => undefined);
  const answer = (async () => call(ending.signal))().catch(() => undefined);
  try {
    return await Promise.race([answer, late]);
  } finally {
    stopped.removeEventListener('abort', stop);
    ending.abort();
  }
}
