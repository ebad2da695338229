import type { StorageLayout } from '../layout/storage-layout.ts';
import { type BatchRules, batchSlotsByPoolGroup, slotsToAdmit } from './min-slots.ts';

/** Requests that are all of one length. */
export interface FittingRequestsOptions {
  /** Slots of each pool group of the device, as in `TierPlan.slots`. */
  slots: readonly number[];
  /** Tokens of each request, >= 1. */
  length: number;
  /** Tokens at the start that all of them share, >= 0. Default 0. At most `length - 1` count: the last token is a request's own. */
  systemPromptLength?: number;
}

/**
 * How many requests can be on the device at a time while each writes its token number `length`. They are let in as a batch of
 * `constraints` is: shared blocks count once, and `maxUtilForResume` leaves its part of each pool group free.
 *
 * @returns a count; infinite for a layout without buffers, as nothing limits it
 */
export function fittingRequests(layout: StorageLayout, config: BatchRules, options: FittingRequestsOptions): number {
  const { slots, length, systemPromptLength = 0 } = options;
  const request = { capacity: length, historyLength: length - 1 };
  const shared = { systemPromptLength: Math.min(systemPromptLength, length - 1) };
  const one = batchSlotsByPoolGroup(layout, config, { kvCaches: [request], ...shared });
  const two = batchSlotsByPoolGroup(layout, config, { kvCaches: [request, request], ...shared });
  const fits = (requests: number) =>
    slots.every((n, group) => slotsToAdmit(layout, config, group, one[group] + (requests - 1) * (two[group] - one[group])) <= n);
  // Each request takes at least the slot that it writes to, in every group.
  let tooMany = Math.min(...slots) + 1;
  if (tooMany === Infinity) return Infinity;
  let fitting = 0;
  while (tooMany - fitting > 1) {
    const middle = fitting + Math.floor((tooMany - fitting) / 2);
    if (fits(middle)) fitting = middle;
    else tooMany = middle;
  }
  return fitting;
}
