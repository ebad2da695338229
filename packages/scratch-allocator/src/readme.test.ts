import { defineCacheConfig } from '@bufferwise/core-policy';
import { expect, it } from 'vitest';
import { planSlots, SlotAllocator, StorageLayout } from './index.ts';

it('the example of the README says what happens', () => {
  const layer = (layerId: number, roles: string[]) =>
    ({ type: 'attention', layerId, slidingWindowSize: 128, buffers: roles.map((role) => ({ role, size: 8192 })) }) as const;
  const config = defineCacheConfig({
    tokensPerBlock: 64,
    layers: [layer(0, ['key', 'value']), layer(1, ['key'])],
    tiers: [{ tier: 'device', quota: 64 << 20 }],
  });
  const layout = StorageLayout.fromConfig(config);
  expect(layout.poolGroups[0].slotBytes).toBe(24576);
  expect(layout.bufferAttr(1, 'key')).toMatchObject({ offset: 16384, scratchPagesPerBlock: 1 });

  const [device] = planSlots(layout, config);
  const allocator = new SlotAllocator(device.slots[0]);
  const slots = new Int32Array(3);
  expect(allocator.allocate(3, slots)).toBe(true);
  expect([...slots]).toEqual([0, 1, 2]);
  expect([...layout.pageIndexConverter(1, 'key').convert(slots, { indexMode: 'per_layer' })]).toEqual([2, 5, 8]);
});
