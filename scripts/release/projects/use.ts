/** What a project in TypeScript may rely on: types are there, and they say no. */
import { type CacheStatistics, HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { type CacheConfig, defineCacheConfig, type ReusePolicy } from '@bufferwise/core-policy';
import { WebGpuPageDevice } from '@bufferwise/gpu-kernels';

const reusePolicy: ReusePolicy = 'optional';
const config: CacheConfig = defineCacheConfig({
  tokensPerBlock: 16,
  tiers: [{ tier: 'device', quota: 1 << 20 }],
  layers: [{ type: 'attention', layerId: 0, buffers: [{ role: 'key', size: 64, reusePolicy }] }],
});
export const onGpu = (device: GPUDevice) => new KvCacheManager({ config, device: new WebGpuPageDevice(device) });
export const statistics: CacheStatistics = new KvCacheManager({ config, device: new HostPageDevice() }).statistics();

// @ts-expect-error There is no such policy.
export const wrong: ReusePolicy = 'shared';
