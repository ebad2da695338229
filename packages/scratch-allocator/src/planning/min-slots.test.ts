import { defineCacheConfig, type LayerConfig, staleRange } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StorageLayout } from '../layout/storage-layout.ts';
import { minDeviceSlots, structuralFloors } from './min-slots.ts';

const buffers = [{ role: 'key', size: 1024 }];

function configOf(tokensPerBlock: number, layers: LayerConfig[]) {
  return defineCacheConfig({ tokensPerBlock, layers, tiers: [{ tier: 'device', quota: 2 ** 30 }] });
}

function floorsOf(tokensPerBlock: number, ...layers: Partial<LayerConfig>[]): number[] {
  const numbered = layers.map((layer, layerId) => ({ type: 'attention', layerId, buffers, ...layer }) as LayerConfig);
  return structuralFloors(StorageLayout.fromConfig(configOf(tokensPerBlock, numbered)));
}

describe('the structural floor', () => {
  it.each([
    [8, 0, 4, 3],
    [2, 0, 4, 2],
    [1, 0, 4, 1],
    [32, 0, 32, 2],
    [128, 1, 32, 6],
  ])(
    'of a window of %i tokens and %i sink tokens, %i tokens a block, is %i',
    (slidingWindowSize, numSinkTokens, tokensPerBlock, floor) => {
      expect(floorsOf(tokensPerBlock, { slidingWindowSize, numSinkTokens })).toEqual([floor]);
    },
  );

  it('of attention without a window is that of the largest window, at least 1', () => {
    expect(floorsOf(4, {}, { slidingWindowSize: 8 }, { slidingWindowSize: 2 })).toEqual([3, 3, 2]);
    expect(floorsOf(4, {})).toEqual([1]);
  });

  it('of recurrent state is 1', () => {
    expect(floorsOf(4, { type: 'ssm' }, { slidingWindowSize: 8 })).toEqual([1, 3]);
  });

  it('holds every block that a decode step can need, at every phase', () => {
    const lengths = fc.record({
      window: fc.integer({ min: 1, max: 200 }),
      sinks: fc.integer({ min: 0, max: 40 }),
      tpb: fc.integer({ min: 1, max: 32 }),
    });
    fc.assert(
      fc.property(lengths, fc.nat(1000), ({ window, sinks, tpb }, history) => {
        const layout = StorageLayout.fromConfig(
          configOf(tpb, [{ type: 'attention', layerId: 0, slidingWindowSize: window, numSinkTokens: sinks, buffers }]),
        );
        const stale = staleRange(layout.lifecycles.get(0 as never), history, tpb);
        const blocks = Math.ceil((history + 1) / tpb);
        expect(blocks - (stale.end - stale.begin)).toBeLessThanOrEqual(structuralFloors(layout)[0]);
      }),
    );
  });
});

it('lifecycles of one pool group need their floors together', () => {
  const config = configOf(32, [
    { type: 'attention', layerId: 0, buffers, slidingWindowSize: 64 },
    { type: 'attention', layerId: 1, buffers },
    { type: 'attention', layerId: 2, buffers, reusePolicy: 'private' },
  ]);
  expect(minDeviceSlots(StorageLayout.fromConfig(config), config)).toEqual([3 + 3, 3]);
});
