import type { CallOptions } from '@bufferwise/adapter-kit';

/** What came of something that a call waited for. `late`: the time of the call was over, or its caller gave up. */
export type Settled<T> =
  | { readonly status: 'done'; readonly value: T }
  | { readonly status: 'failed'; readonly error: unknown }
  | { readonly status: 'late' };

const LATE = { status: 'late' } as const;

/** The time that one call may take. */
export interface CallTime {
  /** Aborted when the time is over, when the caller gives up, and at the end of the call: for whatever can be taken back. */
  readonly signal: AbortSignal;
  /** Whether the time is over, which is not so when the caller gave up. */
  readonly expired: boolean;
  /** Waits, but not beyond the time of the call. What comes later is dropped. Never rejects. */
  settle<T>(promise: Promise<T>): Promise<Settled<T>>;
}

/**
 * Runs a call that ends in time, whatever it waits for.
 *
 * @returns what `work` answers; rejects with the reason of `options.signal` as soon as that is aborted
 */
export async function inTime<T>(
  timeoutMs: number,
  options: CallOptions | undefined,
  work: (time: CallTime) => Promise<T>,
): Promise<T> {
  const signal = options?.signal;
  signal?.throwIfAborted();
  const controller = new AbortController();
  let finish: () => void = () => {};
  const late = new Promise<typeof LATE>((resolve) => {
    finish = () => {
      controller.abort();
      resolve(LATE);
    };
  });
  let expired = false;
  const timer = setTimeout(() => {
    expired = true;
    finish();
  }, timeoutMs);
  signal?.addEventListener('abort', finish);
  try {
    const answer = await work({
      signal: controller.signal,
      get expired() {
        return expired;
      },
      settle: (promise) =>
        Promise.race([
          promise.then(
            (value) => ({ status: 'done', value }) as const,
            (error: unknown) => ({ status: 'failed', error }) as const,
          ),
          late,
        ]),
    });
    signal?.throwIfAborted();
    return answer;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', finish);
    finish();
  }
}
