import type { BufferId } from '@bufferwise/core-policy';

/** Buffers of equal expanded size, one lifecycle and one coalescing group, side by side in a slot. */
export interface CoalescedBuffer {
  /** Bytes of one member in a slot, expanded. */
  readonly singleBufferSize: number;
  /** Members in config order; member i begins at byte `i × singleBufferSize` of the slot. */
  readonly bufferIds: readonly BufferId[];
}

/** A buffer that exists, with what decides who shares its slot. */
export interface SizedBuffer {
  id: BufferId;
  /** Bytes in a slot: page size × expansion. */
  size: number;
  coalescingGroup: string | undefined;
}

/** Bytes of one slot of the pool that a coalesced buffer lives in. */
export function slotBytesOf(coalesced: CoalescedBuffer): number {
  return coalesced.singleBufferSize * coalesced.bufferIds.length;
}

/**
 * The coalesced buffers of one lifecycle, one a pool: largest slot first, equal slots in order of their first member.
 *
 * @param buffers real buffers of the lifecycle, in config order
 */
export function coalesce(buffers: readonly SizedBuffer[]): CoalescedBuffer[] {
  const byKey = new Map<string, { singleBufferSize: number; bufferIds: BufferId[] }>();
  for (const { id, size, coalescingGroup } of buffers) {
    const key = coalescingGroup === undefined ? `${size}` : `${size}:${coalescingGroup}`;
    const coalesced = byKey.get(key);
    if (coalesced) coalesced.bufferIds.push(id);
    else byKey.set(key, { singleBufferSize: size, bufferIds: [id] });
  }
  for (const coalesced of byKey.values()) Object.freeze(Object.freeze(coalesced).bufferIds);
  return [...byKey.values()].sort((a, b) => slotBytesOf(b) - slotBytesOf(a));
}
