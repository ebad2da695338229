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

/**
 * The pools that a manager with this config makes at first: what a device has to hold. `requiredLimits` of
 * `@bufferwise/gpu-kernels` tells from it how to request one.
 */
export function devicePools(config: CacheConfig): DevicePool[] {
  const layout = StorageLayout.fromConfig(config);
  const { slots } = planTier(layout, config, 0);
  return layout.poolGroups.flatMap(({ pools }, group) =>
    pools.map(({ slotBytes }, pool) => ({ label: `pool group ${group} pool ${pool}`, slotBytes, numSlots: slots[group] })),
  );
}
