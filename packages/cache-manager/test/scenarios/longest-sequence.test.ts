import { type CacheConfigInput, defineCacheConfig } from '@bufferwise/core-policy';
import { expect, test } from 'vitest';
import { HostPageDevice, KvCacheManager } from '../../src/index.ts';

const MIB = 1 << 20;

/** Optional attention, whole and windowed, of equal pages, so that both share eight slots. */
function shared(commitMinSnapshot: boolean): CacheConfigInput {
  const buffers = [{ role: 'kv', size: (2 * MIB) / 8, reusePolicy: 'optional' as const }];
  return {
    tokensPerBlock: 4,
    layers: [
      { type: 'attention', layerId: 0, buffers },
      { type: 'attention', layerId: 1, slidingWindowSize: 4, buffers },
    ],
    tiers: [{ tier: 'device', quota: 2 * MIB }],
    maxUtilForResume: 1,
    commitMinSnapshot,
  };
}

test.each([
  ['its window', false, 24],
  ['the endpoint before its window besides', true, 24],
])('a request that keeps %s reaches the length it was told, and not a token more', async (_, commitMinSnapshot, longest) => {
  const manager = new KvCacheManager({ config: defineCacheConfig(shared(commitMinSnapshot)), device: new HostPageDevice() });
  expect(manager.clampSequenceLength(1000)).toBe(longest);
  const request = manager.createKvCache();
  await request.resume();
  let length = 0;
  while (request.resize(length + 1, length)) {
    length++;
    request.commit([length]);
  }
  expect(length).toBe(longest);
  await manager.close({ force: true });
});
