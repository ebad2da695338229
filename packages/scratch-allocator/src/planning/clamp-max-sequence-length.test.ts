import { defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { StorageLayout } from '../layout/storage-layout.ts';
import { clampMaxSequenceLength } from './clamp-max-sequence-length.ts';

function clampOf(slots: number[], ...layers: Partial<LayerConfig>[]) {
  const buffers = [{ role: 'key', size: 1024 }];
  const config = defineCacheConfig({
    tokensPerBlock: 32,
    layers: layers.map((layer, layerId) => ({ type: 'attention', layerId, buffers, ...layer }) as LayerConfig),
    tiers: [{ tier: 'device', quota: 2 ** 30 }],
  });
  const layout = StorageLayout.fromConfig(config);
  return (batchSize: number, upperBound: number) => clampMaxSequenceLength(layout, { slots, batchSize, upperBound });
}

describe('clampMaxSequenceLength', () => {
  it('allows whole blocks, and nothing when not even one fits', () => {
    const clamp = clampOf([1], {});
    expect([clamp(1, 0), clamp(1, 32), clamp(1, 64), clamp(2, 64), clamp(3, 64)]).toEqual([0, 32, 32, 0, 0]);
  });

  it('never says more than was asked for', () => {
    const clamp = clampOf([3], {});
    expect([clamp(1, 1), clamp(1, 33), clamp(1, 95), clamp(1, 96), clamp(1, 97)]).toEqual([1, 33, 95, 96, 96]);
  });

  it('a window of one block runs on in one slot', () => {
    expect(clampOf([1], { slidingWindowSize: 32 })(1, 96)).toBe(96);
  });

  it('adds up the lifecycles of a pool group and puts the other requests aside', () => {
    const clamp = clampOf([4], { slidingWindowSize: 32 }, {});
    expect([clamp(1, 96), clamp(2, 96)]).toEqual([96, 32]);
  });

  it('counts the page that the last token is written to, also where the window starts anew', () => {
    expect(clampOf([0], { slidingWindowSize: 1 })(1, 32)).toBe(0);
    expect(clampOf([1], { slidingWindowSize: 1 })(1, 320)).toBe(320);
  });

  it('counts one page of recurrent state for each request', () => {
    const clamp = clampOf([2], { type: 'ssm', buffers: [{ role: 'ssm_state', size: 4096 }] });
    expect([clamp(1, 1000), clamp(2, 1000), clamp(3, 1000)]).toEqual([1000, 1000, 0]);
  });

  it('keeps what the last whole block of an optional window needs, where minimal snapshots ask for it', () => {
    const buffers = [{ role: 'key', size: 1024 }];
    const layer: LayerConfig = { type: 'attention', layerId: 0, buffers, slidingWindowSize: 2, reusePolicy: 'optional' };
    const config = defineCacheConfig({ tokensPerBlock: 32, layers: [layer], tiers: [{ tier: 'device', quota: 2 ** 30 }] });
    const layout = StorageLayout.fromConfig(config);
    const clamp = (slots: number, commitMinSnapshot?: boolean) =>
      clampMaxSequenceLength(layout, { slots: [slots], batchSize: 1, upperBound: 320, commitMinSnapshot });
    expect([clamp(1), clamp(1, true), clamp(2, true)]).toEqual([320, 32, 320]);
  });

  it('lets a request that grows by tokens get past the beginning of each block', () => {
    const buffers = [{ role: 'key', size: 1024 }];
    const layer: LayerConfig = { type: 'attention', layerId: 0, buffers, slidingWindowSize: 32 };
    const config = defineCacheConfig({ tokensPerBlock: 32, layers: [layer], tiers: [{ tier: 'device', quota: 2 ** 30 }] });
    const layout = StorageLayout.fromConfig(config);
    const clamp = (slots: number) =>
      clampMaxSequenceLength(layout, { slots: [slots], batchSize: 1, upperBound: 320, byToken: true });
    expect([clamp(1), clamp(2)]).toEqual([32, 320]);
  });
});
