import { defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';
import { expect, test } from 'vitest';
import { mapLayouts } from './layout-map.ts';
import { describeLayout, readLayout, transferLayout } from './transfer-layout.ts';

const layers: readonly LayerConfig[] = [
  { type: 'attention', layerId: 0, buffers: [{ role: 'key', size: 64 }, { role: 'value', size: 32 }] }, // biome-ignore format: a row
  { type: 'ssm', layerId: 1, buffers: [{ role: 'ssm_state', size: 128 }, { role: 'replay_x', size: 16, reusePolicy: 'private' }] }, // biome-ignore format: a row
  { type: 'attention', layerId: 2, slidingWindowSize: 8, buffers: [{ role: 'key', size: 64, tokensPerBlockOverride: 2 }] },
];

function layoutOf(all: readonly LayerConfig[], tokensPerBlock = 4) {
  return transferLayout(defineCacheConfig({ tokensPerBlock, layers: all, tiers: [{ tier: 'device', quota: 1 << 20 }] }));
}

/** The layers, one buffer of them changed. */
function changed(layerId: number, role: string, change: object): LayerConfig[] {
  return layers.map((layer) =>
    layer.layerId !== layerId
      ? layer
      : { ...layer, buffers: layer.buffers.map((buffer) => (buffer.role === role ? { ...buffer, ...change } : buffer)) },
  );
}

test('the order of layers and buffers is of no meaning, so bytes land by layer and role', () => {
  const turned = [...layers].reverse().map((layer) => ({ ...layer, buffers: [...layer.buffers].reverse() }));
  expect(layoutOf(turned)).toEqual(layoutOf(layers));
  expect(readLayout(describeLayout(layoutOf(turned)))).toEqual(layoutOf(layers));
  const { groups } = mapLayouts(layoutOf(layers), layoutOf(turned));
  expect(groups.flat().every(({ isSame, offset, fromOffset }) => isSame && offset === fromOffset)).toBe(true);
});

test.each<[string, LayerConfig[]]>([
  ['layer 0, role "value"', changed(0, 'value', { size: 36 })],
  ['layer 1, role "replay_x"', changed(1, 'replay_x', { size: 0 })],
  ['layer 2, role "key"', changed(2, 'key', { tokensPerBlockOverride: 1 })],
  ['layer 1, role "ssm_state"', changed(1, 'ssm_state', { reusePolicy: 'private' })],
])('a difference in %s is refused by its name, from either side', (name, others) => {
  for (const [here, there] of [
    [layers, others],
    [others, layers],
  ]) {
    expect(() => mapLayouts(layoutOf(here), layoutOf(there))).toThrowError(
      expect.objectContaining({ code: 'layout-mismatch', message: expect.stringContaining(name) }),
    );
  }
});

test('blocks of other sizes are refused, where nothing says how to cut them', () => {
  expect(() => mapLayouts(layoutOf(layers), layoutOf(layers, 8))).toThrowError(
    expect.objectContaining({ code: 'layout-mismatch' }),
  );
});

test('a page has the bytes of a whole block, however many pages the block is cut into', () => {
  expect(layoutOf(layers).groups.map(({ pageBytes }) => pageBytes)).toEqual([2 * 64, 64 + 32, 16, 128]);
});
