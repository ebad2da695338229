import { cpuUsage } from 'node:process';

/**
 * Milliseconds of processor time that the process has used so far. Time of other processes on a busy machine is not in it; that of
 * our own collector and compiler, which run beside, is.
 */
export function processorMs(): number {
  const { user, system } = cpuUsage();
  return (user + system) / 1000;
}

/** What one call of `processorMs` takes itself: a microsecond or two, so as much as a dozen decode steps. */
export const ASKING_MS = leastAskingMs();

function leastAskingMs(): number {
  const calls = 2000;
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 20; round++) {
    const start = processorMs();
    for (let i = 0; i < calls; i++) processorMs();
    least = Math.min(least, (processorMs() - start) / calls);
  }
  return least;
}
