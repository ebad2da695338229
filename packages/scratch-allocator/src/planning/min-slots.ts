import type { CacheConfig, Lifecycle, LifecycleId } from '@bufferwise/core-policy';
import type { StorageLayout } from '../layout/storage-layout.ts';
import { batchSlots } from './batch-slots.ts';

/**
 * Slots below which a lifecycle cannot serve even one request.
 *
 * A window keeps its sink blocks, the blocks that W - 1 earlier tokens can touch at the worst phase, and the block being written.
 * Attention without a window has no number of its own: it gets as many as the largest window, at least one.
 */
export function structuralFloors(layout: StorageLayout): number[] {
  const lifecycles = Array.from({ length: layout.lifecycles.size }, (_, id) => layout.lifecycles.get(id as LifecycleId));
  const windowed = lifecycles.map((lifecycle) => windowFloor(lifecycle, layout.tokensPerBlock));
  const largestWindow = Math.max(1, ...windowed);
  return lifecycles.map((lifecycle, id) =>
    lifecycle.kind === 'attention' && lifecycle.windowSize === null ? largestWindow : windowed[id],
  );
}

/** 1 for lifecycles without a window. */
function windowFloor(lifecycle: Lifecycle, tokensPerBlock: number): number {
  if (lifecycle.kind === 'ssm' || lifecycle.windowSize === null) return 1;
  return lifecycle.numSinkBlocks + Math.floor((lifecycle.windowSize + tokensPerBlock - 2) / tokensPerBlock) + 1;
}

/**
 * Slots that each pool group of the device must have: the floors of its lifecycles together, and room for every batch in
 * `constraints`. A group that can grow keeps what `maxUtilForResume` leaves unused on top, or the batch would not be let in.
 *
 * @returns index = pool group
 */
export function minDeviceSlots(
  layout: StorageLayout,
  config: Pick<CacheConfig, 'constraints' | 'maxUtilForResume' | 'swaScratchReuse' | 'commitMinSnapshot'>,
): number[] {
  const floors = structuralFloors(layout);
  return layout.poolGroups.map(({ lifecycleIds }) => {
    const floor = lifecycleIds.reduce((sum, id) => sum + floors[id], 0);
    const canGrow = lifecycleIds.some((id) => layout.lifecycles.get(id).kind === 'attention');
    const utilization = canGrow ? config.maxUtilForResume : 1;
    const constraints = config.constraints.map((batch) => {
      const slots = lifecycleIds.reduce((sum, id) => sum + batchSlots(layout, id, batch, config), 0);
      return slotsAtUtilization(slots, utilization);
    });
    return Math.max(floor, ...constraints);
  });
}

/** The fewest slots of which `used` are at most the share `utilization`. */
function slotsAtUtilization(used: number, utilization: number): number {
  const slots = Math.ceil(used / utilization);
  return slots > 1 && used / (slots - 1) <= utilization ? slots - 1 : slots;
}
