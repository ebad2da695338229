import { type CacheConfigInput, defineCacheConfig } from '@bufferwise/core-policy';
import { expect, it } from 'vitest';
import { StorageLayout } from '../layout/storage-layout.ts';
import { planSlots } from './plan-slots.ts';

const MIB = 2 ** 20;

function plan(input: CacheConfigInput) {
  const config = defineCacheConfig(input);
  return planSlots(StorageLayout.fromConfig(config), config);
}

it('gives two groups of nearly equal slots what whole grains allow', () => {
  const [device] = plan({
    tokensPerBlock: 32,
    layers: [
      { type: 'attention', layerId: 0, buffers: [{ role: 'key', size: 2 * MIB - 1 }] },
      { type: 'attention', layerId: 1, slidingWindowSize: 1, buffers: [{ role: 'key', size: 2 * MIB }] },
    ],
    tiers: [{ tier: 'device', quota: 10 * MIB }],
    constraints: [{ kvCaches: [{ capacity: 32, historyLength: 0 }] }],
  });
  expect(device.minSlots).toEqual([2, 2]);
  expect(device.slots).toEqual([2, 3]);
});
