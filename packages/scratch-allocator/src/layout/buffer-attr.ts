import type { LifecycleId } from '@bufferwise/core-policy';

/** Where the pages of one buffer lie. */
export interface BufferAttr {
  readonly lifecycleId: LifecycleId;
  /** Index into `StorageLayout.poolGroups`. */
  readonly poolGroup: number;
  /** Index into the pools of that group. */
  readonly pool: number;
  /** Bytes from the start of the coalesced slot. */
  readonly offset: number;
  /** Bytes in a slot, expanded: `expansion` pages. */
  readonly size: number;
  /** Pages a block. */
  readonly expansion: number;
  /** Position among all buffers of the coalesced buffer: `offset / size`. */
  readonly indexInSlot: number;
  /** Buffers that its layer has in the coalesced buffer: the sub-pages that a scratch block of the layer takes there. */
  readonly scratchPagesPerBlock: number;
}
