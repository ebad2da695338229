import type { BlockRange } from '@bufferwise/core-policy';

/** Scratch of one request in one lifecycle. Its data dies with the step. */
export interface ScratchDesc {
  /** Block ordinals that have no page of their own in this step. */
  range: BlockRange;
  /** The slots they share: `StorageLayout.scratchSlots` of them, or more. */
  slotIds: Int32Array;
}
