import { defineCacheConfig } from '@bufferwise/core-policy';

export { explainPair, formatPair } from '@bufferwise/scratch-allocator';

export const config = defineCacheConfig({
  tokensPerBlock: 16,
  layers: [0, 1, 2, 3].map((layerId) => ({
    type: 'attention',
    layerId,
    buffers: ['key', 'value'].map((role) => ({ role, size: 64 * 1024 })),
  })),
  tiers: [{ tier: 'device', quota: 512 * 2 ** 20 }],
});

/** A device with the limits that every device has. */
export const device = { limits: { maxStorageBufferBindingSize: 128 * 2 ** 20 } };
