import type { Lifecycle } from '@bufferwise/core-policy';

/** Eviction priority of a request's pages of one block: 0 … 100, lower leaves first. Called when a page is created. */
export type PriorityFn = (blockOrdinal: number, lifecycle: Lifecycle) => number;
