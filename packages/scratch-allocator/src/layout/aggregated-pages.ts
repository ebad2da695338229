import type { BufferId, LifecycleId } from '@bufferwise/core-policy';
import type { BufferAttr } from './buffer-attr.ts';

/**
 * A run of buffers that lie next to each other in a slot, so that one copy a block moves them all. The bytes of a page with
 * slot id `s` are `[offset + s × stride, offset + s × stride + size)` of the pool.
 */
export interface AggregatedPageDesc {
  readonly lifecycleId: LifecycleId;
  readonly poolGroup: number;
  readonly pool: number;
  /** Bytes from the start of the slot to the first buffer. */
  readonly offset: number;
  /** Bytes of the run. */
  readonly size: number;
  /** Bytes from slot to slot. */
  readonly stride: number;
  /** The run in order of address; each takes `size / expansion` bytes a page. */
  readonly buffers: readonly AggregatedBuffer[];
}

export interface AggregatedBuffer {
  readonly bufferId: BufferId;
  /** Bytes in the slot, expanded. */
  readonly size: number;
  readonly expansion: number;
}

/** A buffer with the place it was given. */
export interface PlacedBuffer {
  readonly bufferId: BufferId;
  attr: BufferAttr;
  /** Bytes of a slot of its pool. */
  slotBytes: number;
}

/** Joins buffers whose bytes touch, lifecycle by lifecycle and pool by pool. A buffer named twice counts once. */
export function aggregatePages(placed: readonly PlacedBuffer[]): AggregatedPageDesc[] {
  const sorted = [...placed].sort(
    ({ attr: a }, { attr: b }) => a.lifecycleId - b.lifecycleId || a.pool - b.pool || a.offset - b.offset,
  );
  const runs: PlacedBuffer[][] = [];
  for (const buffer of sorted) {
    const run = runs.at(-1);
    const last = run?.at(-1);
    if (last?.attr === buffer.attr) continue;
    if (run !== undefined && last !== undefined && touches(last.attr, buffer.attr)) run.push(buffer);
    else runs.push([buffer]);
  }
  return runs.map(describeRun);
}

/** Whether `next` begins where `attr` ends. */
function touches(attr: BufferAttr, next: BufferAttr): boolean {
  return attr.lifecycleId === next.lifecycleId && attr.pool === next.pool && attr.offset + attr.size === next.offset;
}

function describeRun(run: readonly PlacedBuffer[]): AggregatedPageDesc {
  const { attr, slotBytes } = run[0];
  const { lifecycleId, poolGroup, pool, offset } = attr;
  const buffers = run.map(({ bufferId, attr: { size, expansion } }) => ({ bufferId, size, expansion }));
  const size = buffers.reduce((bytes, buffer) => bytes + buffer.size, 0);
  return { lifecycleId, poolGroup, pool, offset, size, stride: slotBytes, buffers };
}
