import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig } from '@bufferwise/core-policy';
import { expect, test } from 'vitest';
import { connectorLayout, connectorMemory } from './connector-layout.ts';

/** Buffers of several sizes in one group, pages that are divided, a window and a state; one private buffer. */
const config = defineCacheConfig({
  tokensPerBlock: 8,
  layers: [
    {
      type: 'attention',
      layerId: 0,
      buffers: [
        { role: 'key', size: 64 },
        { role: 'value', size: 128 },
      ],
    },
    {
      type: 'attention',
      layerId: 1,
      buffers: [
        { role: 'key', size: 32, tokensPerBlockOverride: 4 },
        { role: 'value', size: 128 },
        { role: 'scratch', size: 16, reusePolicy: 'private' },
      ],
    },
    { type: 'attention', layerId: 2, slidingWindowSize: 9, buffers: [{ role: 'key', size: 64 }] },
    { type: 'ssm', layerId: 3, buffers: [{ role: 'ssm_state', size: 256 }] },
  ],
  tiers: [{ tier: 'device', quota: 1 << 20 }],
});

test('a layout says where each buffer lies in a page, as its pool has it', async () => {
  const device = new HostPageDevice();
  const manager = new KvCacheManager({ config, device });
  await manager.ready();
  const numbersOf = (layerId: number, role: string) =>
    role === 'value' ? { type: 'f16' as const, rowLength: 4 + layerId } : undefined;
  const { groups } = connectorLayout(manager, 'model', numbersOf);
  const memory = connectorMemory(manager, device);
  expect(groups.map(({ buffers }) => buffers?.length)).toEqual([4, 1, 1]);
  for (const { groupId, pageBytes, buffers = [] } of groups) {
    const page = Uint8Array.from({ length: pageBytes }, (_, i) => (i * 7 + groupId) & 255);
    memory.writePages(groupId, [1], [page]);
    let end = 0;
    for (const { layerId, role, offset, bytes, numbers } of buffers) {
      const pool = manager.poolMemory(layerId, role);
      const slot = new Uint8Array(pool.spec.slotBytes);
      await device.readSlots(pool, Int32Array.of(1), slot);
      const at = manager.layout.bufferAttr(layerId, role).offset;
      expect(page.subarray(offset, offset + bytes)).toEqual(slot.subarray(at, at + bytes));
      expect(offset).toBe(end);
      end = offset + bytes;
      expect(numbers).toEqual(numbersOf(layerId, role));
    }
    expect(end).toBe(pageBytes);
  }
  await manager.close();
});
