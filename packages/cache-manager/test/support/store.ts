import { defineCacheConfig, LifecycleRegistry } from '@bufferwise/core-policy';
import { planSlots, StorageLayout } from '@bufferwise/scratch-allocator';
import { expect } from 'vitest';
import type { PageDevice } from '../../src/index.ts';
import type { PageId } from '../../src/page/page-table.ts';
import { groupRules } from '../../src/request/group-rules.ts';
import { StorageManager } from '../../src/storage/storage-manager.ts';
import { Evictor } from '../../src/tiers/evictor.ts';
import { HostMemory } from '../../src/tiers/host-memory.ts';
import { Offload } from '../../src/tiers/offload.ts';
import { type LayerShape, type ModelOptions, model } from './stage.ts';
import { StampedDevice } from './stamped-device.ts';

/** Storage without a manager; what is dropped is remembered and freed. Every colder tier is in memory. */
export function storeOf(layers: readonly LayerShape[], options: ModelOptions = {}, device: PageDevice = new StampedDevice()) {
  const config = defineCacheConfig(model(layers, options));
  const lifecycles = LifecycleRegistry.fromConfig(config);
  const layout = StorageLayout.fromConfig(config, lifecycles);
  const groups = groupRules({
    lifecycles,
    poolGroupOf: (id) => layout.poolGroupOf(id),
    tokensPerBlock: config.tokensPerBlock,
    minSnapshot: false,
  });
  const plans = planSlots(layout, config);
  const slotBytes = layout.coldPoolGroups.map((group) => group.slotBytes);
  const memories = plans.map(({ tier }) => (tier === 'device' ? null : new HostMemory(slotBytes)));
  const storage = new StorageManager({ layout, groups, plans, device, memories, stagingBytes: 64 << 20 });
  const evicted: PageId[] = [];
  storage.onEvict((page) => {
    evicted.push(page);
    storage.pages.block[page] = -1;
    storage.freed(page);
  });
  const lost: PageId[] = [];
  const offload = new Offload(
    storage,
    (pages) => lost.push(...pages),
    () => {},
  );
  const evictor = new Evictor(storage, offload);
  const makeRoom = (poolGroup: number, count: number) => expect(evictor.tryFree(poolGroup, count)).toBe(true);
  return { storage, evicted, lost, offload, evictor, makeRoom };
}
