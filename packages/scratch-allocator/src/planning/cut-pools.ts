import { type BufferId, type CacheConfig, defineCacheConfig, StateError } from '@bufferwise/core-policy';
import { PoolTooLargeError } from '../errors/pool-too-large-error.ts';
import type { CoalescedBuffer } from '../layout/coalescing.ts';
import { StorageLayout } from '../layout/storage-layout.ts';
import { planTier } from './plan-slots.ts';

export interface CutPoolsOptions {
  /** Bytes that one pool may have: the `maxStorageBufferBindingSize` of the device, 128 MiB by WebGPU's default. */
  maxPoolBytes: number;
}

/**
 * A config whose pools are small enough to be bound as a whole: the buffers of a pool that is too large go into several pools,
 * by coalescing groups, layer by layer. Pools of one group are allocated in step, so slot ids and everything that the manager
 * decides stay as they are, and no kernel has to look for a page in more than one binding. Groups keep their ids.
 *
 * What it costs: scratch slots hold fewer layers, so that somewhat more of them are needed (`scratchUtilization`).
 *
 * @returns the same object when every pool fits
 * @throws {PoolTooLargeError} when the pool of a single buffer is too large
 * @throws {StateError} `invalid-pool-bytes` when the bound is no whole number of bytes above 0
 */
export function cutPools(config: CacheConfig, { maxPoolBytes }: CutPoolsOptions): CacheConfig {
  if (!(Number.isSafeInteger(maxPoolBytes) && maxPoolBytes > 0)) throw invalidPoolBytes(maxPoolBytes);
  let fitting = config;
  for (;;) {
    const pieces = findPieces(fitting, maxPoolBytes);
    if (pieces.size === 0) return fitting;
    // Cut pools round up by themselves, and lifecycles may part: look again.
    fitting = defineCacheConfig(withCoalescingGroups(fitting, pieces));
  }
}

/** The buffers of pools that are too large, and to which piece each goes. */
function findPieces(config: CacheConfig, maxPoolBytes: number): Map<BufferId, number> {
  const layout = StorageLayout.fromConfig(config);
  const { slots } = planTier(layout, config, 0);
  const pieces = new Map<BufferId, number>();
  layout.poolGroups.forEach(({ pools }, group) => {
    for (const { slotBytes, coalescedBuffers } of pools) {
      const poolBytes = slotBytes * slots[group];
      if (poolBytes <= maxPoolBytes) continue;
      for (const coalesced of coalescedBuffers) cut(coalesced, poolBytes, maxPoolBytes, pieces);
    }
  });
  return pieces;
}

/** Whole layers stay together while there are several. */
function cut({ bufferIds }: CoalescedBuffer, poolBytes: number, maxPoolBytes: number, pieces: Map<BufferId, number>): void {
  if (bufferIds.length === 1) throw new PoolTooLargeError(bufferIds[0], poolBytes, maxPoolBytes);
  const layers = [...new Set(bufferIds.map(({ layerId }) => layerId))];
  const units = layers.length > 1 ? bufferIds.map(({ layerId }) => layers.indexOf(layerId)) : bufferIds.map((_, i) => i);
  const numUnits = layers.length > 1 ? layers.length : bufferIds.length;
  const numPieces = Math.min(numUnits, Math.ceil(poolBytes / maxPoolBytes));
  bufferIds.forEach((id, i) => {
    pieces.set(id, Math.floor((units[i] * numPieces) / numUnits));
  });
}

function withCoalescingGroups(config: CacheConfig, pieces: ReadonlyMap<BufferId, number>): CacheConfig {
  const pieceOf = new Map([...pieces].map(([{ layerId, role }, piece]) => [`${layerId} ${role}`, piece]));
  const layers = config.layers.map((layer) => ({
    ...layer,
    buffers: layer.buffers.map((buffer) => {
      const piece = pieceOf.get(`${layer.layerId} ${buffer.role}`);
      return piece === undefined ? buffer : { ...buffer, coalescingGroup: `${buffer.coalescingGroup ?? ''}#${piece}` };
    }),
  }));
  return { ...config, layers };
}

function invalidPoolBytes(bytes: number): StateError {
  return new StateError('invalid-pool-bytes', `A pool may have a whole number of bytes above 0, not ${bytes}.`);
}
