import {
  type BufferConfig,
  defineCacheConfig,
  type LayerConfig,
  type LifecycleId,
  LifecycleRegistry,
  UnknownBufferError,
  UnknownLifecycleError,
} from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { StorageLayout } from './storage-layout.ts';

const GROUP_0 = 0 as LifecycleId;
const GROUP_1 = 1 as LifecycleId;

/** Layers are numbered in order; all are attention unless they say otherwise. */
function layoutOf(tokensPerBlock: number, ...layers: (Partial<LayerConfig> & { buffers: BufferConfig[] })[]): StorageLayout {
  const numbered = layers.map((layer, layerId) => ({ type: 'attention', layerId, ...layer }) as LayerConfig);
  return StorageLayout.fromConfig(
    defineCacheConfig({ tokensPerBlock, layers: numbered, tiers: [{ tier: 'device', quota: 2 ** 30 }] }),
  );
}

const key = (size: number, more: Partial<BufferConfig> = {}): BufferConfig => ({ role: 'key', size, ...more });
const value = (size: number, more: Partial<BufferConfig> = {}): BufferConfig => ({ role: 'value', size, ...more });

describe('coalescing', () => {
  it('lays buffers of equal expanded size side by side, in config order', () => {
    const layout = layoutOf(4, { buffers: [key(2048, { tokensPerBlockOverride: 2 })] }, { buffers: [key(4096)] });
    expect(layout.poolGroups).toHaveLength(1);
    expect(layout.poolGroups[0].pools).toHaveLength(1);
    expect(layout.bufferAttr(0, 'key')).toEqual({
      lifecycleId: 0,
      poolGroup: 0,
      pool: 0,
      offset: 0,
      size: 4096,
      expansion: 2,
      indexInSlot: 0,
      scratchPagesPerBlock: 1,
    });
    expect(layout.bufferAttr(1, 'key')).toMatchObject({ expansion: 1, offset: 4096, size: 4096, indexInSlot: 1 });
    expect(layout.coalescedBuffer(1, 'key')).toEqual({
      singleBufferSize: 4096,
      bufferIds: [
        { layerId: 0, role: 'key' },
        { layerId: 1, role: 'key' },
      ],
    });
  });

  it('keeps coalescing groups apart, and those that name none from those that do', () => {
    const layout = layoutOf(
      4,
      { buffers: [key(64), value(64, { coalescingGroup: 'a' })] },
      { buffers: [key(64, { coalescingGroup: 'a' }), value(64)] },
    );
    expect(
      layout.coalescedBuffers(GROUP_0).map(({ bufferIds }) => bufferIds.map(({ layerId, role }) => `${layerId}.${role}`)),
    ).toEqual([
      ['0.key', '1.value'],
      ['0.value', '1.key'],
    ]);
  });

  it('orders pools by slot bytes, largest first, not by buffer size', () => {
    const layout = layoutOf(4, { buffers: [key(1024), value(1536)] }, { buffers: [key(1024)] });
    expect(layout.poolGroups[0].pools.map(({ slotBytes }) => slotBytes)).toEqual([2048, 1536]);
    expect(layout.bufferAttr(0, 'value').pool).toBe(1);
  });

  it('counts the buffers that each layer has in the coalesced buffer', () => {
    const layout = layoutOf(4, { buffers: [key(64), value(64), { role: 'index', size: 32 }] }, { buffers: [key(64)] });
    expect(layout.bufferAttr(0, 'key').scratchPagesPerBlock).toBe(2);
    expect(layout.bufferAttr(0, 'index').scratchPagesPerBlock).toBe(1);
    expect(layout.bufferAttr(1, 'key').scratchPagesPerBlock).toBe(1);
  });
});

describe('pool groups', () => {
  it('hold lifecycles with the same slot sizes', () => {
    const layout = layoutOf(4, { buffers: [key(512), value(64)], slidingWindowSize: 8 }, { buffers: [key(512), value(64)] });
    expect(layout.poolGroups).toHaveLength(1);
    expect(layout.poolGroups[0]).toMatchObject({ lifecycleIds: [0, 1], slotBytes: 576, policy: 'required', sparsityGroup: null });
    expect(layout.poolGroups[0].pools[1].coalescedBuffers.map(({ bufferIds }) => bufferIds[0].layerId)).toEqual([0, 1]);
    expect([layout.poolGroupOf(GROUP_0), layout.poolGroupOf(GROUP_1)]).toEqual([0, 0]);
  });

  it('never cross policies, on the device nor in colder tiers', () => {
    const buffers = [key(512)];
    const layout = layoutOf(
      4,
      { buffers, slidingWindowSize: 8, reusePolicy: 'optional' },
      { buffers, slidingWindowSize: 8, reusePolicy: 'private' },
      { buffers, slidingWindowSize: 8 },
    );
    expect(layout.poolGroups.map(({ policy, lifecycleIds }) => [policy, lifecycleIds])).toEqual([
      ['optional', [0]],
      ['private', [1]],
      ['required', [2]],
    ]);
    expect(layout.coldPoolGroups.map(({ policy, lifecycleIds }) => [policy, lifecycleIds])).toEqual([
      ['optional', [0]],
      ['private', [1]],
      ['required', [2]],
    ]);
  });

  it('never cross sparsity labels: layers of one label lie next to each other', () => {
    const buffers = [key(512)];
    const layout = layoutOf(4, { buffers }, { buffers, sparsityGroup: 's' }, { buffers }, { buffers, sparsityGroup: 's' });
    expect(layout.lifecycles.size).toBe(2);
    expect(layout.poolGroups.map(({ sparsityGroup }) => sparsityGroup)).toEqual([null, 's']);
    expect(layout.coalescedBuffer(2, 'key').bufferIds.map(({ layerId }) => layerId)).toEqual([0, 2]);
    expect(layout.coalescedBuffer(3, 'key').bufferIds.map(({ layerId }) => layerId)).toEqual([1, 3]);
  });

  it('are one for each sparsity label when only windows differ', () => {
    const layer = (slidingWindowSize: number, sparsityGroup?: string) => ({
      buffers: [key(512)],
      slidingWindowSize,
      sparsityGroup,
    });
    const layout = layoutOf(4, layer(128), layer(256), layer(128, 's'), layer(256, 's'));
    expect(layout.lifecycles.size).toBe(4);
    expect(layout.poolGroups.map(({ lifecycleIds }) => lifecycleIds)).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });

  it('of a colder tier go by whole pages: lifecycles apart on the device may be together', () => {
    const layout = layoutOf(4, { buffers: [key(512), value(256)] }, { buffers: [key(768)], slidingWindowSize: 8 });
    expect(layout.poolGroups.map(({ slotBytes }) => slotBytes)).toEqual([768, 768]);
    expect(layout.coldPoolGroups).toEqual([{ lifecycleIds: [0, 1], policy: 'required', sparsityGroup: null, slotBytes: 768 }]);
    expect([layout.coldPoolGroupOf(GROUP_0), layout.coldPoolGroupOf(GROUP_1), layout.pageBytes(GROUP_1)]).toEqual([0, 0, 768]);
  });
});

describe('scratch', () => {
  const window = (...roles: string[]) => ({ slidingWindowSize: 32, buffers: roles.map((role) => ({ role, size: 1024 })) });
  const layers = (n: number) => Array.from({ length: n }, () => window('key', 'value'));

  it.each([
    [32, 28, 1],
    [8, 7, 1],
    [1, 6, 6],
    [16, 14, 1],
    [8, 9, 2],
  ])('of %i equal layers: %i blocks take %i slots', (numLayers, blocks, slots) => {
    const layout = layoutOf(32, ...layers(numLayers));
    expect(layout.scratchUtilization(GROUP_0)).toEqual({ num: 1, den: numLayers });
    expect(layout.scratchSlots(GROUP_0, blocks)).toBe(slots);
  });

  it('is ruled by the layer that takes most of a slot', () => {
    const layout = layoutOf(32, window('key', 'value'), window('key'));
    expect(layout.scratchUtilization(GROUP_0)).toEqual({ num: 2, den: 3 });
    expect(layout.scratchSlots(GROUP_0, 0)).toBe(0);
    expect(layout.scratchSlots(GROUP_0, 3)).toBe(2);
    expect(layout.scratchSlots(GROUP_0, 4)).toBe(3);
  });
});

describe('addresses', () => {
  const layout = layoutOf(8, { buffers: [key(64, { tokensPerBlockOverride: 2 }), value(256)] }, { buffers: [key(256)] });

  it('a page index is one page of the buffer as configured', () => {
    expect(layout.pageStride(0, 'key')).toBe(64);
    expect(layout.pageStride(0, 'value')).toBe(256);
  });

  it('page indices end where the pool ends', () => {
    expect(layout.pageIndexBound(0, 'key', 10)).toBe(10 * 3 * 4);
    expect(layout.pageIndexBound(0, 'value', 10)).toBe(10 * 3 - 1);
    expect(layout.pageIndexBound(1, 'key', 10)).toBe(10 * 3 - 2);
    expect(layout.pageIndexBound(1, 'key', 10, 'per_layer')).toBe(10 * 3);
    expect(layout.pageIndexBound(1, 'key', 0)).toBe(0);
    for (const indexMode of ['shared', 'per_layer'] as const) {
      const last = layout.pageIndexConverter(0, 'value').convert(Int32Array.of(9), { indexMode })[0];
      expect(last).toBeLessThan(layout.pageIndexBound(0, 'value', 10, indexMode));
    }
  });
});

describe('aggregated pages', () => {
  const roles = ['key', 'value', 'index'];
  const layout = layoutOf(
    4,
    { buffers: roles.map((role) => ({ role, size: 64 })) },
    { buffers: [key(64, { tokensPerBlockOverride: 2 }), value(64)] },
    { buffers: [key(64)], slidingWindowSize: 8 },
  );

  it('join what touches and split what does not', () => {
    const runs = layout.aggregatedPages([
      { layerId: 2, role: 'key' },
      { layerId: 1, role: 'value' },
      { layerId: 0, role: 'key' },
      { layerId: 0, role: 'value' },
      { layerId: 1, role: 'key' },
    ]);
    expect(runs).toEqual([
      {
        lifecycleId: 0,
        poolGroup: 0,
        pool: 0,
        offset: 0,
        size: 128,
        stride: 256,
        buffers: [
          { bufferId: { layerId: 0, role: 'key' }, size: 64, expansion: 1 },
          { bufferId: { layerId: 0, role: 'value' }, size: 64, expansion: 1 },
        ],
      },
      {
        lifecycleId: 0,
        poolGroup: 0,
        pool: 0,
        offset: 192,
        size: 64,
        stride: 256,
        buffers: [{ bufferId: { layerId: 1, role: 'value' }, size: 64, expansion: 1 }],
      },
      {
        lifecycleId: 0,
        poolGroup: 0,
        pool: 1,
        offset: 0,
        size: 128,
        stride: 128,
        buffers: [{ bufferId: { layerId: 1, role: 'key' }, size: 128, expansion: 2 }],
      },
      {
        lifecycleId: 1,
        poolGroup: 1,
        pool: 0,
        offset: 0,
        size: 64,
        stride: 64,
        buffers: [{ bufferId: { layerId: 2, role: 'key' }, size: 64, expansion: 1 }],
      },
    ]);
  });

  it('count a buffer once that is named twice', () => {
    const once = layout.aggregatedPages([{ layerId: 0, role: 'key' }]);
    expect(
      layout.aggregatedPages([
        { layerId: 0, role: 'key' },
        { layerId: 0, role: 'key' },
      ]),
    ).toEqual(once);
  });

  it('of nothing are none, of the unknown an error', () => {
    expect(layout.aggregatedPages([])).toEqual([]);
    expect(() => layout.aggregatedPages([{ layerId: 0, role: 'latent' }])).toThrow(UnknownBufferError);
  });
});

describe('what the layout does not know', () => {
  const layout = layoutOf(4, { buffers: [key(64), value(0)] }, { buffers: [] });

  it('is refused by name: buffers absent or of size 0, and layers without buffers', () => {
    for (const ask of ['bufferAttr', 'coalescedBuffer', 'pageIndexConverter', 'pageStride'] as const) {
      expect(() => layout[ask](0, 'value')).toThrow(UnknownBufferError);
      expect(() => layout[ask](0, 'latent')).toThrow(/"key"/);
      expect(() => layout[ask](1, 'key')).toThrow(UnknownBufferError);
    }
    expect(() => layout.pageIndexBound(7, 'key', 1)).toThrow(UnknownBufferError);
  });

  it('is refused by id', () => {
    for (const id of [-1, 1, 0.5] as LifecycleId[]) {
      for (const ask of ['poolGroupOf', 'coldPoolGroupOf', 'pageBytes', 'coalescedBuffers', 'scratchUtilization'] as const) {
        expect(() => layout[ask](id)).toThrow(UnknownLifecycleError);
      }
      expect(() => layout.scratchSlots(id, 1)).toThrow(UnknownLifecycleError);
    }
  });
});

it('takes a registry that the caller has already', () => {
  const config = defineCacheConfig({
    tokensPerBlock: 4,
    layers: [{ type: 'attention', layerId: 0, buffers: [key(64)] }],
    tiers: [{ tier: 'device', quota: 2 ** 30 }],
  });
  const registry = LifecycleRegistry.fromConfig(config);
  expect(StorageLayout.fromConfig(config, registry).lifecycles).toBe(registry);
});
