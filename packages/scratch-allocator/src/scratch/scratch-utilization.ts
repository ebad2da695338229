import type { CoalescedBuffer } from '../layout/coalescing.ts';
import { isGreater, type Rational, rational } from '../rational.ts';

/**
 * How much of a slot one scratch block needs at most: the largest, over the layers and coalesced buffers of a lifecycle, of
 * (buffers of that layer) / (all buffers in the coalesced buffer). Layers run one after the other, so all of them write their
 * scratch blocks to the same slots, and the layer that takes most decides.
 */
export function scratchUtilizationOf(coalescedBuffers: readonly CoalescedBuffer[]): Rational {
  let largest: Rational = { num: 0, den: 1 };
  for (const { bufferIds } of coalescedBuffers) {
    for (const buffers of buffersPerLayer(bufferIds).values()) {
      const fraction = rational(buffers, bufferIds.length);
      if (isGreater(fraction, largest)) largest = fraction;
    }
  }
  return largest;
}

/** How many of the buffers each layer has. */
export function buffersPerLayer(bufferIds: CoalescedBuffer['bufferIds']): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { layerId } of bufferIds) counts.set(layerId, (counts.get(layerId) ?? 0) + 1);
  return counts;
}
