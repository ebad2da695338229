import { defineCacheConfig } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { poolShards } from './pool-shards.ts';
import { StorageLayout } from './storage-layout.ts';

const pools = fc
  .record({ slotBytes: fc.integer({ min: 1, max: 500 }), numSlots: fc.nat(400), room: fc.nat(4000) })
  .map(({ slotBytes, numSlots, room }) => ({ slotBytes, numSlots, maxShardBytes: slotBytes + room }));

describe('the laws of shards', () => {
  it('every slot lies in exactly one shard, wholly inside it, and no two slots meet', () => {
    fc.assert(
      fc.property(pools, (pool) => {
        const shards = poolShards(pool);
        const ends = new Array<number>(shards.numShards).fill(0);
        for (let slot = 0; slot < pool.numSlots; slot++) {
          const shard = shards.shardOf(slot);
          expect(shards.offsetOf(slot)).toBe(ends[shard]);
          expect(shards.offsetOf(slot)).toBe(shards.slotInShard(slot) * pool.slotBytes);
          ends[shard] += pool.slotBytes;
        }
        expect(ends).toEqual(ends.map((_, shard) => shards.bytesOf(shard)));
        expect(ends.reduce((sum, bytes) => sum + bytes, 0)).toBe(pool.numSlots * pool.slotBytes);
      }),
    );
  });

  it('no shard is too large, and all but the last are full', () => {
    fc.assert(
      fc.property(pools, (pool) => {
        const shards = poolShards(pool);
        for (let shard = 0; shard < shards.numShards; shard++) {
          expect(shards.slotsIn(shard)).toBeGreaterThan(0);
          expect(shards.bytesOf(shard)).toBeLessThanOrEqual(pool.maxShardBytes);
          if (shard === shards.numShards - 1) continue;
          expect(shards.slotsIn(shard)).toBe(shards.slotsPerShard);
          expect(shards.bytesOf(shard) + pool.slotBytes).toBeGreaterThan(pool.maxShardBytes);
        }
      }),
    );
  });

  it('a page index of the pool names the same bytes through its shard, in both index modes', () => {
    const layout = StorageLayout.fromConfig(
      defineCacheConfig({
        tokensPerBlock: 8,
        layers: [
          {
            type: 'attention',
            layerId: 0,
            buffers: [
              { role: 'key', size: 64, tokensPerBlockOverride: 2 },
              { role: 'value', size: 256 },
              { role: 'index', size: 256 },
            ],
          },
        ],
        tiers: [{ tier: 'device', quota: 2 ** 20 }],
      }),
    );
    const roles = fc.constantFrom('key', 'value', 'index');
    const modes = fc.constantFrom('shared' as const, 'per_layer' as const);
    fc.assert(
      fc.property(roles, modes, fc.integer({ min: 768, max: 8000 }), fc.nat(60), (role, indexMode, maxShardBytes, slot) => {
        const shards = poolShards({ slotBytes: 768, numSlots: 61, maxShardBytes });
        const { offset } = layout.bufferAttr(0, role);
        const converter = layout.pageIndexConverter(0, role);
        const stride = layout.pageStride(0, role);
        const pagesPerShard = shards.pagesPerShard(converter);
        converter.convert(Int32Array.of(slot), { indexMode }).forEach((index, page) => {
          expect(Math.floor(index / pagesPerShard)).toBe(shards.shardOf(slot));
          const base = indexMode === 'shared' ? offset : 0;
          expect(base + (index % pagesPerShard) * stride).toBe(shards.offsetOf(slot) + offset + page * stride);
        });
      }),
    );
  });
});
