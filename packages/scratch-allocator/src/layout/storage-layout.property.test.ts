import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyConfig, lifecycleIds, TOKENS_PER_BLOCK } from '../../test/any-config.ts';
import { StorageLayout } from './storage-layout.ts';

describe('the laws of a layout', () => {
  it('buffers of a lifecycle never overlap, stay in their slot and fill it', () => {
    fc.assert(
      fc.property(anyConfig, (config) => {
        const layout = StorageLayout.fromConfig(config);
        for (const id of lifecycleIds(layout)) {
          const { pools } = layout.poolGroups[layout.poolGroupOf(id)];
          const taken = pools.map(() => 0);
          const placed = layout.lifecycles.bufferGrouping[id].map(({ layerId, role }) => layout.bufferAttr(layerId, role));
          placed.sort((a, b) => a.pool - b.pool || a.offset - b.offset);
          for (const { pool, offset, size, lifecycleId } of placed) {
            expect(lifecycleId).toBe(id);
            expect(offset).toBe(taken[pool]);
            taken[pool] += size;
          }
          expect(taken).toEqual(pools.map(({ slotBytes }) => slotBytes));
        }
      }),
    );
  });

  it('only buffers of one lifecycle, size and coalescing group share a slot', () => {
    fc.assert(
      fc.property(anyConfig, (config) => {
        const layout = StorageLayout.fromConfig(config);
        for (const layer of config.layers) {
          for (const { role, size, tokensPerBlockOverride = TOKENS_PER_BLOCK, coalescingGroup } of layer.buffers) {
            const group = layout.lifecycles.getBufferGroupId(layer.layerId, role);
            for (const other of layout.coalescedBuffer(layer.layerId, role).bufferIds) {
              const sharing = config.layers
                .find(({ layerId }) => layerId === other.layerId)
                ?.buffers.find((buffer) => buffer.role === other.role);
              expect(layout.lifecycles.getBufferGroupId(other.layerId, other.role)).toBe(group);
              expect(sharing?.coalescingGroup).toBe(coalescingGroup);
              expect(layout.bufferAttr(other.layerId, other.role).size).toBe((size * TOKENS_PER_BLOCK) / tokensPerBlockOverride);
            }
          }
        }
      }),
    );
  });

  it('policies and sparsity labels never share addresses, on the device nor in colder tiers', () => {
    fc.assert(
      fc.property(anyConfig, (config) => {
        const layout = StorageLayout.fromConfig(config);
        for (const group of [...layout.poolGroups, ...layout.coldPoolGroups]) {
          for (const id of group.lifecycleIds) {
            const lifecycle = layout.lifecycles.get(id);
            expect(lifecycle.policy).toBe(group.policy);
            expect(lifecycle.kind === 'attention' ? lifecycle.sparsityGroup : null).toBe(group.sparsityGroup);
          }
        }
        for (const groups of [layout.poolGroups, layout.coldPoolGroups]) {
          expect(groups.flatMap((group) => group.lifecycleIds).sort((a, b) => a - b)).toEqual(lifecycleIds(layout));
        }
      }),
    );
  });

  it('every page has bytes of its own in its pools, over all buffers and blocks', () => {
    fc.assert(
      fc.property(anyConfig, (config) => {
        const layout = StorageLayout.fromConfig(config);
        for (const id of lifecycleIds(layout)) {
          const seen = new Set<string>();
          for (const { layerId, role } of layout.lifecycles.bufferGrouping[id]) {
            const { pool, expansion } = layout.bufferAttr(layerId, role);
            const stride = layout.pageStride(layerId, role);
            const indices = layout.pageIndexConverter(layerId, role).convert(Int32Array.of(0, 1, 2), { indexMode: 'per_layer' });
            expect(indices.length).toBe(3 * expansion);
            for (const index of indices) {
              expect(index).toBeLessThan(layout.pageIndexBound(layerId, role, 3, 'per_layer'));
              for (let byte = index * stride; byte < (index + 1) * stride; byte += 8) {
                expect(seen.has(`${pool} ${byte}`)).toBe(false);
                seen.add(`${pool} ${byte}`);
              }
            }
          }
          expect(seen.size * 8).toBe(3 * layout.pageBytes(id));
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe('the laws of scratch', () => {
  const steps = fc.record({ begin: fc.nat(5), blocks: fc.integer({ min: 1, max: 23 }), after: fc.nat(3) });

  it('within a layer no two (block, role) pairs share a sub-page, and every index lies in a slot that was given', () => {
    fc.assert(
      fc.property(anyConfig, steps, (config, { begin, blocks, after }) => {
        const layout = StorageLayout.fromConfig(config);
        for (const id of lifecycleIds(layout)) {
          const slots = layout.scratchSlots(id, blocks);
          const slotIds = Int32Array.from({ length: slots }, (_, i) => 1000 - 7 * i);
          const scratch = { range: { begin, end: begin + blocks }, slotIds };
          const base = new Int32Array(begin + blocks + after).fill(-1);
          const subPagesOfLayers = new Map<number, Set<string>>();
          for (const { layerId, role } of layout.lifecycles.bufferGrouping[id]) {
            const { scale, expansion } = layout.pageIndexConverter(layerId, role);
            const { pool } = layout.bufferAttr(layerId, role);
            const indices = layout.pageIndexConverter(layerId, role).convert(base, { indexMode: 'per_layer', scratch });
            const subPages = subPagesOfLayers.get(layerId) ?? new Set<string>();
            subPagesOfLayers.set(layerId, subPages);
            for (let block = 0; block < base.length; block++) {
              const first = indices[block * expansion];
              const pages = [...indices.subarray(block * expansion, (block + 1) * expansion)];
              if (block < begin || block >= begin + blocks) {
                expect(pages.every((page) => page === -1)).toBe(true);
                continue;
              }
              expect(first % expansion).toBe(0);
              expect(pages).toEqual(pages.map((_, j) => first + j));
              const subPage = first / expansion;
              expect(slotIds).toContain(Math.floor(subPage / scale));
              expect(subPages.has(`${pool} ${subPage}`)).toBe(false);
              subPages.add(`${pool} ${subPage}`);
            }
          }
        }
      }),
    );
  });

  it('scratch of different policies never meets, even in slots of the same ids', () => {
    fc.assert(
      fc.property(anyConfig, fc.integer({ min: 1, max: 9 }), (config, blocks) => {
        const layout = StorageLayout.fromConfig(config);
        const policyAt = new Map<string, string>();
        for (const id of lifecycleIds(layout)) {
          const { policy } = layout.lifecycles.get(id);
          const slotIds = Int32Array.from({ length: layout.scratchSlots(id, blocks) }, (_, i) => i);
          const scratch = { range: { begin: 0, end: blocks }, slotIds };
          const base = new Int32Array(blocks).fill(-1);
          for (const { layerId, role } of layout.lifecycles.bufferGrouping[id]) {
            const { poolGroup, pool } = layout.bufferAttr(layerId, role);
            const stride = layout.pageStride(layerId, role);
            for (const index of layout.pageIndexConverter(layerId, role).convert(base, { indexMode: 'per_layer', scratch })) {
              for (let byte = index * stride; byte < (index + 1) * stride; byte += 8) {
                const at = `${poolGroup} ${pool} ${byte}`;
                expect(policyAt.get(at) ?? policy).toBe(policy);
                policyAt.set(at, policy);
              }
            }
          }
        }
      }),
      { numRuns: 40 },
    );
  });

  it('the number of slots is the exact ceiling: the layer that takes most needs every one of them', () => {
    fc.assert(
      fc.property(anyConfig, fc.integer({ min: 1, max: 200 }), (config, blocks) => {
        const layout = StorageLayout.fromConfig(config);
        for (const id of lifecycleIds(layout)) {
          const needed = layout.lifecycles.bufferGrouping[id].map(({ layerId, role }) => {
            const { scale, scratchPagesPerBlock } = layout.pageIndexConverter(layerId, role);
            return Number((BigInt(blocks) * BigInt(scratchPagesPerBlock) + BigInt(scale) - 1n) / BigInt(scale));
          });
          expect(layout.scratchSlots(id, blocks)).toBe(Math.max(...needed));
        }
      }),
    );
  });
});
