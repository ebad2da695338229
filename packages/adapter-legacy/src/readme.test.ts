import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig } from '@bufferwise/core-policy';
import { expect, it } from 'vitest';
import { LegacyCacheView } from './index.ts';

it('the first example of the README says what happens', async () => {
  const buffers = ['key', 'value'].map((role) => ({ role, size: 8192 }));
  const config = defineCacheConfig({
    tokensPerBlock: 64,
    layers: [0, 1].map((layerId) => ({ type: 'attention', layerId, buffers })),
    tiers: [{ tier: 'device', quota: 64 << 20 }],
  });
  const device = new HostPageDevice();
  const manager = new KvCacheManager({ config, device });
  const [first, second] = [manager.createKvCache(), manager.createKvCache()];
  for (const [request, length] of [
    [first, 150],
    [second, 20],
  ] as const) {
    await request.resume();
    request.resize(length);
  }

  const view = new LegacyCacheView(manager);
  const group = view.groupOfLayer(0);
  const { indices, maxBlocks } = view.blockIndices([first, second], group);
  const { memory, offset, stride } = view.bufferPlace(0, 'value');

  expect(maxBlocks).toBe(3);
  expect(indices.length).toBe(6);
  expect([...indices.subarray(4)]).toEqual([-1, -1]);
  expect(memory).toBe(manager.poolMemory(0, 'value'));
  expect([offset, stride]).toEqual([8192, 4 * 8192]);
  await manager.close({ force: true });
});
