import type { BatchDesc, CacheConfig, Lifecycle, LifecycleId } from '@bufferwise/core-policy';
import type { StorageLayout } from '../layout/storage-layout.ts';
import { batchSlots } from './batch-slots.ts';

/**
 * Slots below which a lifecycle cannot serve even one request.
 *
 * That is what a decode step can hold at most. Attention without a window has no such number: it gets as many as the largest
 * window, at least one.
 */
export function structuralFloors(layout: StorageLayout): number[] {
  const lifecycles = Array.from({ length: layout.lifecycles.size }, (_, id) => layout.lifecycles.get(id as LifecycleId));
  const decodePages = lifecycles.map((lifecycle) => maxDecodePages(lifecycle, layout.tokensPerBlock));
  const largest = Math.max(1, ...decodePages.map((pages) => pages ?? 1));
  return decodePages.map((pages) => pages ?? largest);
}

/**
 * The most pages of a lifecycle that a request holds while it writes one token, at the worst phase: sink blocks, the blocks that
 * W - 1 earlier tokens touch, and the block being written. Null for attention without a window, which grows without end.
 */
export function maxDecodePages(lifecycle: Lifecycle, tokensPerBlock: number): number | null {
  if (lifecycle.kind === 'ssm') return 1;
  if (lifecycle.windowSize === null) return null;
  return lifecycle.numSinkBlocks + Math.floor((lifecycle.windowSize + tokensPerBlock - 2) / tokensPerBlock) + 1;
}

/** What of a config decides how many slots a batch takes on the device. */
export type BatchRules = Pick<CacheConfig, 'maxUtilForResume' | 'swaScratchReuse' | 'commitMinSnapshot'>;

/**
 * Slots that each pool group of the device must have: the floors of its lifecycles together, and room for every batch in
 * `constraints`.
 *
 * @returns index = pool group
 */
export function minDeviceSlots(layout: StorageLayout, config: BatchRules & Pick<CacheConfig, 'constraints'>): number[] {
  const floors = structuralFloors(layout);
  const constraints = config.constraints.map((batch) => batchSlotsByPoolGroup(layout, config, batch));
  return layout.poolGroups.map(({ lifecycleIds }, group) => {
    const floor = lifecycleIds.reduce((sum, id) => sum + floors[id], 0);
    const batches = constraints.map((used) => slotsToAdmit(layout, config, group, used[group]));
    return Math.max(floor, ...batches);
  });
}

/** `batchSlots` of all lifecycles of each pool group together. Index = pool group. */
export function batchSlotsByPoolGroup(layout: StorageLayout, config: BatchRules, batch: BatchDesc): number[] {
  return layout.poolGroups.map(({ lifecycleIds }) =>
    lifecycleIds.reduce((sum, id) => sum + batchSlots(layout, id, batch, config), 0),
  );
}

/**
 * Slots that a pool group must have so that a batch that takes `used` of them is let in. A group that can grow keeps on top what
 * `maxUtilForResume` leaves unused.
 */
export function slotsToAdmit(layout: StorageLayout, config: BatchRules, group: number, used: number): number {
  const canGrow = layout.poolGroups[group].lifecycleIds.some((id) => layout.lifecycles.get(id).kind === 'attention');
  return slotsAtUtilization(used, canGrow ? config.maxUtilForResume : 1);
}

/** The fewest slots of which `used` are at most the share `utilization`. */
function slotsAtUtilization(used: number, utilization: number): number {
  const slots = Math.ceil(used / utilization);
  return slots > 1 && used / (slots - 1) <= utilization ? slots - 1 : slots;
}
