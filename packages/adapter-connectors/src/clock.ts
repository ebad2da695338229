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
  const forget = onAbort(stopped, () => ending.abort(stopped.reason));
  const late = clock.wait(ms, ending.signal).then(() => undefined);
  const answer = (async () => call(ending.signal))().catch(() => undefined);
  try {
    return await Promise.race([answer, late]);
  } finally {
    forget();
    ending.abort();
  }
}

/** Who waits for a signal: one listener for all of them, however many calls are under way. */
const watchers = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls back when the signal is aborted, at once when it is. Answers what takes that back. */
function onAbort(signal: AbortSignal, call: () => void): () => void {
  if (signal.aborted) {
    call();
    return () => {};
  }
  const calls = watchers.get(signal) ?? new Set();
  if (!watchers.has(signal)) {
    watchers.set(signal, calls);
    signal.addEventListener('abort', () => {
      for (const each of calls) each();
    });
  }
  calls.add(call);
  return () => calls.delete(call);
}
