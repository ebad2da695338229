import type { BufferId, LifecycleId } from '@bufferwise/core-policy';
import type { BufferAttr } from './buffer-attr.ts';

/**
 * A run of buffers that lie next to each other in a slot, so that one copy a block moves them all. The bytes of a page with
 * slot id `s` are `[offset + s × stride, offset + s × stride + size)` of the pool.
 */
export interface AggregatedPageDesc {
  lifecycleId: LifecycleId;
  poolGroup: number;
  pool: number;
  /** Bytes from the start of the slot to the first buffer. */
  offset: number;
  /** Bytes of the run. */
  size: number;
  /** Bytes from slot to slot. */
  stride: number;
  /** The run in order of address; each takes `size / expansion` bytes a page. */
  buffers: readonly AggregatedBuffer[];
}

export interface AggregatedBuffer {
  bufferId: BufferId;
  /** Bytes in the slot, expanded. */
  size: number;
  expansion: number;
}

/** A buffer with the place it was given. */
export interface PlacedBuffer {
  bufferId: BufferId;
  attr: BufferAttr;
  /** Bytes of its pool's slot. */
  slotBytes: number;
}

/** Joins buffers whose bytes touch, lifecycle by lifecycle and pool by pool. A buffer named twice counts once. */
export function aggregatePages(placed: readonly PlacedBuffer[]): AggregatedPageDesc[] {
  const sorted = [...placed].sort(
    ({ attr: a }, { attr: b }) => a.lifecycleId - b.lifecycleId || a.pool - b.pool || a.offset - b.offset,
  );
  const runs: (AggregatedPageDesc & { buffers: AggregatedBuffer[] })[] = [];
  for (const { bufferId, attr, slotBytes } of sorted) {
    const buffer = { bufferId, size: attr.size, expansion: attr.expansion };
    const run = runs.at(-1);
    const end = run !== undefined && run.lifecycleId === attr.lifecycleId && run.pool === attr.pool ? run.offset + run.size : -1;
    if (run !== undefined && attr.offset < end) continue;
    if (run !== undefined && attr.offset === end) {
      run.size += attr.size;
      run.buffers.push(buffer);
    } else {
      const { lifecycleId, poolGroup, pool, offset, size } = attr;
      runs.push({ lifecycleId, poolGroup, pool, offset, size, stride: slotBytes, buffers: [buffer] });
    }
  }
  return runs;
}
