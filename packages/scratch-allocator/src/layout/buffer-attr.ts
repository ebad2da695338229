import type { LifecycleId } from '@bufferwise/core-policy';

/** Where the pages of one buffer lie. */
export interface BufferAttr {
  lifecycleId: LifecycleId;
  /** Index into `StorageLayout.poolGroups`. */
  poolGroup: number;
  /** Index into the pools of that group. */
  pool: number;
  /** Bytes from the start of the coalesced slot. */
  offset: number;
  /** Bytes in a slot, expanded: `expansion` pages. */
  size: number;
  /** Pages a block. */
  expansion: number;
  /** Position among all buffers of the coalesced buffer: `offset / size`. */
  indexInSlot: number;
  /** Buffers that its layer has in the coalesced buffer: the sub-pages that a scratch block of the layer takes there. */
  scratchPagesPerBlock: number;
}
