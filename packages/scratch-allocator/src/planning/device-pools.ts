import type { CacheConfig } from '@bufferwise/core-policy';
import { StorageLayout } from '../layout/storage-layout.ts';
import { planTier } from './plan-slots.ts';

/** The memory of one pool: what a device is asked for. */
export interface DevicePool {
  /** For people: `"pool group 0 pool 1"`. */
  label: string;
  slotBytes: number;
  numSlots: number;
}

/** The pools of some pool groups with so many slots each; index = pool group, then pool. */
export function poolsOf({ poolGroups }: StorageLayout, numSlots: readonly number[]): DevicePool[][] {
  return poolGroups.map(({ pools }, group) =>
    pools.map(({ slotBytes }, pool) => ({ label: `pool group ${group} pool ${pool}`, slotBytes, numSlots: numSlots[group] })),
  );
}

/**
 * The pools that a manager with this config makes at first: what a device has to hold. `requiredLimits` of
 * `@bufferwise/gpu-kernels` tells from it how to request one.
 */
export function devicePools(config: CacheConfig): DevicePool[] {
  const layout = StorageLayout.fromConfig(config);
  return poolsOf(layout, planTier(layout, config, 0).slots).flat();
}
