import { type CreateKvCacheOptions, HostPageDevice, type KvCache, KvCacheManager } from '@bufferwise/cache-manager';
import { AmbiguousLayerError, defineCacheConfig, type LayerConfig, UnknownBufferError } from '@bufferwise/core-policy';
import { afterEach, expect, test } from 'vitest';
import { LegacyCacheView } from './legacy-cache-view.ts';

const keyAndValue = [
  { role: 'key', size: 64 },
  { role: 'value', size: 64 },
];
const layers: readonly LayerConfig[] = [
  { type: 'attention', layerId: 0, buffers: keyAndValue },
  { type: 'attention', layerId: 1, slidingWindowSize: 4, buffers: keyAndValue },
  { type: 'attention', layerId: 2, buffers: keyAndValue },
  {
    type: 'ssm',
    layerId: 3,
    buffers: [
      { role: 'ssm_state', size: 256 },
      { role: 'replay_ring', size: 128 },
    ],
  },
];

const managers: KvCacheManager[] = [];
afterEach(async () => {
  for (const manager of managers.splice(0)) await manager.close({ force: true });
});

function managerOf(which: readonly LayerConfig[], swaScratchReuse?: { maxRewindLen?: number }): KvCacheManager {
  const tiers = [{ tier: 'device', quota: 8 << 20 }] as const;
  const config = defineCacheConfig({ tokensPerBlock: 4, layers: which, tiers, ...(swaScratchReuse ? { swaScratchReuse } : {}) });
  const manager = new KvCacheManager({ config, device: new HostPageDevice() });
  managers.push(manager);
  return manager;
}

async function open(manager: KvCacheManager, capacity: number, options?: CreateKvCacheOptions): Promise<KvCache> {
  const kv = manager.createKvCache(options);
  expect(await kv.resume()).toBe(true);
  expect(kv.resize(capacity)).toBe(true);
  return kv;
}

test('tells the groups of layers, and the layers of groups', () => {
  const view = new LegacyCacheView(managerOf(layers));
  expect(view.layerGrouping).toEqual([[0, 2], [1], [3]]);
  expect([0, 1, 2, 3].map((layerId) => view.groupOfLayer(layerId))).toEqual([0, 1, 0, 2]);
  expect(view.tokensPerBlock).toBe(4);
  expect(() => view.groupOfLayer(4)).toThrow(UnknownBufferError);
});

test('is not to be had over a manager with a split layer, and names the layer and its groups', () => {
  const split = layers.map((layer) =>
    layer.layerId === 2 ? { ...layer, buffers: [keyAndValue[0], { ...keyAndValue[1], reusePolicy: 'private' as const }] } : layer,
  );
  const manager = managerOf(split);
  try {
    new LegacyCacheView(manager);
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(AmbiguousLayerError);
    expect(error).toMatchObject({ layerId: 2, groups: [0, 2] });
  }
});

test('lines the blocks of a batch up, with -1 behind the last one', async () => {
  const manager = managerOf(layers);
  const view = new LegacyCacheView(manager);
  const batch = [await open(manager, 11), await open(manager, 4), manager.createKvCache()];
  const group = view.groupOfLayer(0);
  const { indices, maxBlocks } = view.blockIndices(batch, group);
  expect(maxBlocks).toBe(3);
  expect([...indices]).toEqual([...batch[0].basePageIndices(group), ...batch[1].basePageIndices(group), -1, -1, -1, -1, -1]);
  expect(indices.slice(0, 4).every((slot) => slot >= 0)).toBe(true);

  const out = new Int32Array(20).fill(77);
  const wider = view.blockIndices(batch, group, { maxBlocks: 5, out });
  expect(wider.indices.buffer).toBe(out.buffer);
  expect([...out.subarray(0, 5)]).toEqual([...batch[0].basePageIndices(group), -1, -1]);
  expect([...out.subarray(15)]).toEqual([77, 77, 77, 77, 77]);
});

test('refuses a batch that does not fit, and writes nothing then', async () => {
  const manager = managerOf(layers);
  const view = new LegacyCacheView(manager);
  const batch = [await open(manager, 11)];
  const group = view.groupOfLayer(0);
  const out = new Int32Array(4).fill(77);
  expect(() => view.blockIndices(batch, group, { maxBlocks: 2, out })).toThrow(/request 0 has 3 blocks.*maxBlocks/);
  expect(() => view.blockIndices(batch, group, { maxBlocks: 5, out })).toThrow(/5 entries.*room for 4/);
  expect([...out]).toEqual([77, 77, 77, 77]);
  expect(() => view.blockIndices(batch, view.groupOfLayer(3))).toThrow(expect.objectContaining({ code: 'not-attention' }));
});

test('refuses block indices where scratch makes them different for each layer', async () => {
  const manager = managerOf(layers.slice(0, 3), {});
  const view = new LegacyCacheView(manager);
  const kv = await open(manager, 24);
  expect(kv.scratch(view.groupOfLayer(1))).not.toBeNull();
  expect(() => view.blockIndices([kv], view.groupOfLayer(1))).toThrow(expect.objectContaining({ code: 'step-refused' }));
  expect(view.blockIndices([kv], view.groupOfLayer(0)).maxBlocks).toBe(6);
});

test('tells the one state index of a request, and -1 for one that is not active', async () => {
  const manager = managerOf(layers);
  const view = new LegacyCacheView(manager);
  const batch = [await open(manager, 3), await open(manager, 3), manager.createKvCache()];
  const group = view.groupOfLayer(3);
  const slots = [...view.stateIndices(batch, group)];
  expect(slots).toEqual([batch[0].ssmBlockBaseIndex(group), batch[1].ssmBlockBaseIndex(group), -1]);
  expect(slots[0]).not.toBe(slots[1]);
});

test('takes the beams of a request one by one', async () => {
  const manager = managerOf(layers);
  const view = new LegacyCacheView(manager);
  const kv = await open(manager, 6);
  expect(kv.forkBeams(2)).toBe(true);
  const slots = view.stateIndices([kv.beam(0), kv.beam(1)], view.groupOfLayer(3));
  expect(slots[0]).not.toBe(slots[1]);
});

test('tells where a buffer lies: counting slots, or counting its own pages from its offset on', () => {
  const manager = managerOf(layers);
  const view = new LegacyCacheView(manager);
  const key = view.bufferPlace(2, 'key');
  const value = view.bufferPlace(2, 'value');
  expect(key).toEqual({ memory: manager.poolMemory(2, 'key'), offset: 128, stride: 256, pageBytes: 64, scale: 4 });
  expect(value.offset).toBe(192);
  const slots = Int32Array.of(5, 9);
  const shared = manager.layout.pageIndexConverter(2, 'key').convert(slots, { indexMode: 'shared' });
  expect([...slots].map((slot) => slot * key.scale)).toEqual([...shared]);
  const perLayer = manager.layout.pageIndexConverter(2, 'key').convert(slots, { indexMode: 'per_layer' });
  expect([...slots].map((slot) => key.offset + slot * key.stride)).toEqual([...perLayer].map((index) => index * key.pageBytes));
  expect(() => view.bufferPlace(2, 'latent')).toThrow(UnknownBufferError);
});

test('refuses the place of a buffer with several pages a block', () => {
  const short: LayerConfig = { type: 'attention', layerId: 0, buffers: [{ role: 'key', size: 64, tokensPerBlockOverride: 2 }] };
  const view = new LegacyCacheView(managerOf([short]));
  expect(() => view.bufferPlace(0, 'key')).toThrow(expect.objectContaining({ code: 'layout-refused' }));
});
