import type { Lifecycle } from '@bufferwise/core-policy';

/**
 * Eviction priority of a request's pages of one block: 0 … 100, lower leaves first. Called before pages are created and when a
 * commit may take a snapshot. It may look at the manager but not change it; what it throws goes through to whoever called.
 */
export type PriorityFn = (blockOrdinal: number, lifecycle: Lifecycle) => number;
