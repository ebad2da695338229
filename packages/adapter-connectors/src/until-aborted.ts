import { type CallOptions, interrupted } from '@bufferwise/adapter-kit';

/** What a call answers, or the signal's reason as soon as that is aborted; what the call has begun goes on then, and is nobody's. */
export async function untilAborted<T>(
  options: CallOptions | undefined,
  call: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  const signal = options?.signal;
  let answer: T | undefined;
  const answered = call(signal).then((value) => {
    answer = value;
  });
  answered.catch(() => {});
  await interrupted(answered, signal);
  return answer as T;
}
