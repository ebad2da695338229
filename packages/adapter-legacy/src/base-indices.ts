import type { StepPages } from '@bufferwise/adapter-kit';
import type { BufferId } from '@bufferwise/core-policy';
import { BAD_PAGE_INDEX, type StorageLayout } from '@bufferwise/scratch-allocator';

/**
 * The base page indices (slot ids) of a layer group, for all requests of a step: read off the rows of any buffer of the group with one
 * page a block. Its index is `slot × scale + offset in the slot`, so the slot is what is left after dividing by the scale.
 *
 * Not for steps in which the group has scratch: a scratch block lies in another slot for each layer.
 *
 * @returns `[numRequests, maxBlocks]`, of recurrent state `[numRequests, 1]`; `BAD_PAGE_INDEX` where there is no page
 */
export function baseIndices(pages: StepPages, { layerId, role }: BufferId): Int32Array {
  const { scale } = pages.layout.pageIndexConverter(layerId, role);
  return rowsOf(pages, layerId, role).map((index) => (index < 0 ? BAD_PAGE_INDEX : Math.floor(index / scale)));
}

/** The rows of one buffer as `StepPages` has them, `[numRequests, rowLength]`: a view, valid until its next `fill`. */
export function rowsOf(pages: StepPages, layerId: number, role: string): Int32Array {
  const begin = pages.rowsAt(layerId, role);
  return pages.entries.subarray(begin, begin + pages.numRequests * pages.rowLength(layerId, role));
}

/** Where a buffer lies in its pool when slots are counted, in 32-bit words: slot s holds it at `baseWords + s × strideWords`. */
export function placesBySlot(layout: StorageLayout, layerId: number, role: string): { baseWords: number; strideWords: number } {
  const { poolGroup, pool, offset } = layout.bufferAttr(layerId, role);
  return { baseWords: offset / 4, strideWords: layout.poolGroups[poolGroup].pools[pool].slotBytes / 4 };
}
