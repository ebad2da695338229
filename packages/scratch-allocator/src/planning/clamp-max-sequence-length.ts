import { divUp } from '@bufferwise/core-policy';
import type { StorageLayout } from '../layout/storage-layout.ts';
import { requestPages } from './request-pages.ts';

export interface ClampRequest {
  /** Slots of each pool group of the device, as in `TierPlan.slots`. */
  slots: readonly number[];
  /** Requests at a time, >= 1. All but one count with a single token each. */
  batchSize: number;
  /** Tokens wished for. */
  upperBound: number;
  /** As in the config: optional windows then keep what their last whole block needs. Default false. */
  commitMinSnapshot?: boolean;
  /**
   * Whether the request gets there token by token, as a decode does: then a block that was only begun must fit besides its window, which
   * reaches into one block more at that time. Default false: only the end of each block is looked at.
   */
  byToken?: boolean;
}

/**
 * The longest sequence, in tokens, that one request of a batch can reach on the device: whole blocks, or `upperBound` itself.
 *
 * A request of so many tokens holds the pages that its last token is written beside and reads; recurrent state is one page.
 */
export function clampMaxSequenceLength(layout: StorageLayout, request: ClampRequest): number {
  const { slots, batchSize, upperBound, commitMinSnapshot = false, byToken = false } = request;
  const { tokensPerBlock } = layout;
  const one = slotsForLength(layout, 1, commitMinSnapshot);
  const available = slots.map((n, group) => n - (batchSize - 1) * one[group]);
  const holds = (length: number) =>
    slotsForLength(layout, length, commitMinSnapshot).every((need, group) => need <= available[group]);
  const fits = (blocks: number) => holds(blocks * tokensPerBlock) && (!byToken || holds((blocks - 1) * tokensPerBlock + 1));
  if (available.some((n) => n < 0) || !fits(1)) return 0;
  let fitting = 1;
  let tooMany = divUp(upperBound, tokensPerBlock);
  if (fits(tooMany)) return upperBound;
  while (tooMany - fitting > 1) {
    const middle = fitting + Math.floor((tooMany - fitting) / 2);
    if (fits(middle)) fitting = middle;
    else tooMany = middle;
  }
  return Math.min(fitting * tokensPerBlock, upperBound);
}

/** Slots of each pool group that a request holds while it writes its token number `length`. */
function slotsForLength(layout: StorageLayout, length: number, commitMinSnapshot: boolean): number[] {
  return layout.poolGroups.map(({ lifecycleIds }) =>
    lifecycleIds.reduce((sum, id) => sum + requestPages(layout, id, length, { commitMinSnapshot }), 0),
  );
}
