import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig } from '@bufferwise/core-policy';

const config = defineCacheConfig({
  tokensPerBlock: 16,
  layers: [{ type: 'attention', layerId: 0, buffers: [{ role: 'key', size: 256 }] }],
  tiers: [{ tier: 'device', quota: 1 << 20 }],
});

/** A request with room for fewer tokens than it has computed. */
export const cache = new KvCacheManager({ config, device: new HostPageDevice() }).createKvCache();
await cache.resume();
cache.resize(8);

export const tokens = Array.from({ length: 20 }, (_, i) => i);
