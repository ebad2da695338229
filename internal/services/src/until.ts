import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 20;

/**
 * Asks again and again until the answer is true.
 *
 * @param what for the error, as the end of a sentence: "the server answers"
 * @param condition may reject, which counts as not yet
 * @param limitMs after which it rejects, with the last failure as `cause`
 */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 30_000,
  details: () => string = () => '',
): Promise<void> {
  const deadline = performance.now() + limitMs;
  let cause: unknown;
  do {
    try {
      if (await condition()) return;
    } catch (error) {
      cause = error;
    }
    await sleep(POLL_MS);
  } while (performance.now() < deadline);
  throw new Error(`Waited ${limitMs} ms in vain until ${what}.${details()}`, { cause });
}
