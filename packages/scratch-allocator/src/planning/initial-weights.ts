import type { BatchDesc, CacheConfig, LifecycleId } from '@bufferwise/core-policy';
import { slotBytesOf } from '../layout/coalescing.ts';
import { roundUp } from '../layout/rounding.ts';
import type { StorageLayout } from '../layout/storage-layout.ts';
import { batchSlots } from './batch-slots.ts';
import { structuralFloors } from './min-slots.ts';

/** Decides the shares when the config says nothing of its load: one request in the middle of a decode. */
const FALLBACK_BATCH: BatchDesc = { kvCaches: [{ capacity: 2049, historyLength: 2048 }] };

/**
 * Device bytes wished for by each lifecycle, relative to each other. The first source that says anything decides:
 * `initialPoolRatio`; `typicalStep`; `constraints`, with the structural floors; a fallback batch.
 *
 * @param granularity bytes of a grain of the device
 * @returns index = lifecycle id; at least one is above 0 when there are lifecycles
 */
export function initialWeights(
  layout: StorageLayout,
  config: Pick<CacheConfig, 'initialPoolRatio' | 'typicalStep' | 'constraints' | 'swaScratchReuse' | 'commitMinSnapshot'>,
  granularity: number,
): readonly number[] {
  const { initialPoolRatio, typicalStep, constraints } = config;
  if (initialPoolRatio) return initialPoolRatio;
  const ids = Array.from({ length: layout.lifecycles.size }, (_, id) => id as LifecycleId);
  const slotsOf = (batch: BatchDesc) => ids.map((id) => batchSlots(layout, id, batch, config));
  const weigh = (slots: readonly number[]) => ids.map((id) => bytesOf(layout, id, slots[id], granularity));
  if (typicalStep) {
    const slots = slotsOf(typicalStep);
    if (slots.some((n) => n > 0)) return weigh(slots);
  }
  if (constraints.length > 0) {
    const floors = structuralFloors(layout);
    const batches = constraints.map(slotsOf);
    return weigh(ids.map((id) => Math.max(floors[id], ...batches.map((slots) => slots[id]))));
  }
  return weigh(slotsOf(FALLBACK_BATCH));
}

function bytesOf(layout: StorageLayout, id: LifecycleId, slots: number, granularity: number): number {
  return layout
    .coalescedBuffers(id)
    .reduce((bytes, coalesced) => bytes + roundUp(slots * slotBytesOf(coalesced), granularity), 0);
}
