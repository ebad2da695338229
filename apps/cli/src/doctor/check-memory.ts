import { formatBytes } from '@bufferwise/scratch-allocator';
import type { Finding } from './finding.ts';

/** What the demo takes, twice over. */
const COMFORTABLE = 2 ** 30;

/** @param free bytes that are free, @param total bytes that the machine has */
export function checkMemory(free: number, total: number): Finding {
  const isEnough = free >= COMFORTABLE;
  return {
    name: 'memory',
    state: isEnough ? 'ok' : 'warn',
    found: `${formatBytes(free)} free of ${formatBytes(total)}`,
    means: isEnough ? 'room for models and host tiers' : 'larger models and host tiers may not fit',
    mend: isEnough ? null : 'close other programs, or give --memory less',
  };
}
