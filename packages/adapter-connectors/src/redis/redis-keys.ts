import type { PageKey } from '@bufferwise/adapter-kit';
import { StoreOptionsError } from '../remote/store-options-error.ts';

/**
 * What a page is called in Redis: `prefix{affinity}key`, or `prefix` and `key` where it has no affinity. A cluster hashes what stands in
 * the braces, so pages of one affinity lie in one slot, on one machine, and come in one pipeline.
 */
export function redisKey(prefix: string, { key, affinity }: PageKey): string {
  return affinity === undefined ? `${prefix}${key}` : `${prefix}{${affinity}}${key}`;
}

/** @throws {StoreOptionsError} when a cluster would take a part of the prefix for an affinity */
export function checkKeyPrefix(prefix: string): void {
  if (!/[{}]/.test(prefix)) return;
  throw new StoreOptionsError(
    `Redis page store: keyPrefix is ${JSON.stringify(prefix)}; leave the braces out, they tell a cluster what to keep together`,
  );
}
