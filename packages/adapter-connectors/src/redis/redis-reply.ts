import type { Settled } from '../remote/call-time.ts';

/**
 * What a command came to, by what follows from it:
 *
 * | outcome       | what happened                                                                   |
 * | ------------- | ------------------------------------------------------------------------------- |
 * | `value`       | an answer of the kind that the command has                                      |
 * | `wrong-type`  | under the key is something that is no string, so no page                        |
 * | `refused`     | the server said no: out of memory, read-only, loading, no permission, …         |
 * | `late`        | nothing came in the time of the call                                            |
 * | `lost`        | the connection broke, or could not be made                                      |
 * | `nonsense`    | an answer that the command cannot have: the stream has lost its place           |
 */
export type RedisOutcome<T> =
  | { readonly outcome: 'value'; readonly value: T }
  | { readonly outcome: 'wrong-type' | 'refused' | 'late' | 'lost' | 'nonsense' };

/** Errors of a server begin with a word in capitals; those of sockets and of the client do not. */
const FROM_SERVER = /^[A-Z][A-Z0-9]+ /;

/** @param accept the answer as the command has it; undefined when it can have no such answer */
export function redisOutcome<T>(settled: Settled<unknown>, accept: (reply: unknown) => T | undefined): RedisOutcome<T> {
  if (settled.status === 'late') return { outcome: 'late' };
  if (settled.status === 'failed') {
    const message = settled.error instanceof Error ? settled.error.message : '';
    if (message.startsWith('WRONGTYPE ')) return { outcome: 'wrong-type' };
    return { outcome: FROM_SERVER.test(message) ? 'refused' : 'lost' };
  }
  const value = accept(settled.value);
  return value === undefined ? { outcome: 'nonsense' } : { outcome: 'value', value };
}

export const asBytes = (reply: unknown) => (reply instanceof Uint8Array ? reply : undefined);

/** Whole numbers from 0 on, as lengths and counts are. */
export const asCount = (reply: unknown) =>
  typeof reply === 'number' && Number.isSafeInteger(reply) && reply >= 0 ? reply : undefined;

/** Whether a `SET … NX` has set: `OK`, or nothing. */
export function asSet(reply: unknown): boolean | undefined {
  if (reply === null) return false;
  return String(reply) === 'OK' ? true : undefined;
}
