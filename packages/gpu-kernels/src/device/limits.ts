import type { PoolSpec } from '@bufferwise/cache-manager';
import { DeviceLimitError } from '../errors/device-error.ts';

/** The limits that the size of a pool touches: it is one buffer, and bound as a whole. Bytes. */
export type PoolLimit = 'maxBufferSize' | 'maxStorageBufferBindingSize';

/** The limits of a device that was requested without any. */
const DEFAULT_LIMITS: Readonly<Record<PoolLimit, number>> = {
  maxBufferSize: 256 * 2 ** 20,
  maxStorageBufferBindingSize: 128 * 2 ** 20,
};

/** Bytes that one pool takes in one buffer, bound as a whole. */
export function poolBytes(spec: PoolSpec): number {
  return spec.slotBytes * spec.numSlots;
}

/**
 * The limits to request a device with, so that it can hold these pools: only those above WebGPU's defaults, hence `{}` for
 * small pools.
 *
 * @param available limits of the adapter; when given, they are checked
 * @returns for `requestDevice({ requiredLimits })`
 * @throws {DeviceLimitError} when the adapter offers less than a pool needs
 * @example await adapter.requestDevice({ requiredLimits: requiredLimits(specs, adapter.limits) })
 */
export function requiredLimits(
  pools: readonly PoolSpec[],
  available?: Readonly<Record<PoolLimit, number>>,
): Partial<Record<PoolLimit, number>> {
  const required: Partial<Record<PoolLimit, number>> = {};
  for (const spec of pools) {
    if (available) requirePoolFits(spec, available, 'Lower the quota, so that the pool gets fewer slots.');
    for (const limit of Object.keys(DEFAULT_LIMITS) as PoolLimit[]) {
      const needed = poolBytes(spec);
      if (needed > Math.max(DEFAULT_LIMITS[limit], required[limit] ?? 0)) required[limit] = needed;
    }
  }
  return required;
}

/** @throws {DeviceLimitError} when the pool, as one buffer and one binding, is beyond the limits */
export function requirePoolFits(spec: PoolSpec, available: Readonly<Record<PoolLimit, number>>, wayOut: string): void {
  const needed = poolBytes(spec);
  for (const limit of Object.keys(DEFAULT_LIMITS) as PoolLimit[]) {
    if (needed > available[limit]) {
      throw new DeviceLimitError(
        `${spec.label} (${spec.numSlots} slots of ${spec.slotBytes} bytes)`,
        limit,
        needed,
        available[limit],
        wayOut,
      );
    }
  }
}
