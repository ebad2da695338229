import { defineCacheConfig, LifecycleRegistry } from '@bufferwise/core-policy';
import { planSlots, StorageLayout } from '@bufferwise/scratch-allocator';
import type { PageDevice } from '../../src/index.ts';
import type { PageId } from '../../src/page/page-table.ts';
import { groupRules } from '../../src/request/group-rules.ts';
import { StorageManager } from '../../src/storage/storage-manager.ts';
import { type LayerShape, type ModelOptions, model } from './stage.ts';
import { StampedDevice } from './stamped-device.ts';

/** Device storage without a manager; what is evicted is remembered and freed. */
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
  const [{ slots: numSlots }] = planSlots(layout, config);
  const storage = new StorageManager({ layout, groups, numSlots, device });
  const evicted: PageId[] = [];
  storage.onEvict((page) => {
    evicted.push(page);
    storage.pages.block[page] = -1;
    storage.freed(page);
  });
  return { storage, evicted };
}
