import { divUp, type LifecycleId, staleRange } from '@bufferwise/core-policy';
import type { StorageLayout } from '../layout/storage-layout.ts';

export interface ClampRequest {
  /** Slots of each pool group of the device, as in `TierPlan.slots`. */
  slots: readonly number[];
  /** Requests at a time, >= 1. All but one count with a single token each. */
  batchSize: number;
  /** Tokens wished for. */
  upperBound: number;
}

/**
 * The longest sequence, in tokens, that one request of a batch can reach on the device: whole blocks, or `upperBound` itself.
 *
 * A request of so many tokens holds the pages that its last token is written beside and reads; recurrent state is one page.
 */
export function clampMaxSequenceLength(layout: StorageLayout, { slots, batchSize, upperBound }: ClampRequest): number {
  const { tokensPerBlock } = layout;
  const one = slotsForLength(layout, 1);
  const available = slots.map((n, group) => n - (batchSize - 1) * one[group]);
  const fits = (blocks: number) =>
    slotsForLength(layout, blocks * tokensPerBlock).every((need, group) => need <= available[group]);
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
function slotsForLength(layout: StorageLayout, length: number): number[] {
  return layout.poolGroups.map(({ lifecycleIds }) =>
    lifecycleIds.reduce((sum, id) => sum + pagesForLength(layout, id, length), 0),
  );
}

function pagesForLength(layout: StorageLayout, id: LifecycleId, length: number): number {
  const { begin, end } = staleRange(layout.lifecycles.get(id), Math.max(0, length - 1), layout.tokensPerBlock);
  return divUp(length, layout.tokensPerBlock) - (end - begin);
}
