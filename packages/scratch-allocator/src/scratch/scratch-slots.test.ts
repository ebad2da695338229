import { defineCacheConfig, type LayerConfig, type LifecycleId, scratchRange } from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { StorageLayout } from '../layout/storage-layout.ts';

const ONE_BLOCK = 32;

function layoutOf(...windows: number[]): StorageLayout {
  const layers = windows.map(
    (slidingWindowSize, layerId): LayerConfig => ({
      type: 'attention',
      layerId,
      slidingWindowSize,
      buffers: [
        { role: 'key', size: 1024 },
        { role: 'value', size: 1024 },
      ],
    }),
  );
  return StorageLayout.fromConfig(defineCacheConfig({ tokensPerBlock: 32, layers, tiers: [{ tier: 'device', quota: 2 ** 20 }] }));
}

/** Scratch blocks of a step and the slots they take. */
function scratchOf(layout: StorageLayout, group: number, historyLength: number, capacity: number, maxRewindLen = 0) {
  const id = group as LifecycleId;
  const { begin, end } = scratchRange(
    layout.lifecycles.get(id),
    { historyLength, capacity, maxRewindLen },
    layout.tokensPerBlock,
  );
  return { range: begin === end ? null : [begin, end], slots: layout.scratchSlots(id, end - begin) };
}

describe('slots that the scratch blocks of a step take', () => {
  it.each([
    [0, 7],
    [64, 5],
  ])('eight layers of a one-block window, rewind %i: one slot for %i blocks', (maxRewindLen, end) => {
    const layout = layoutOf(...new Array<number>(8).fill(ONE_BLOCK));
    expect(scratchOf(layout, 0, 0, 256, maxRewindLen)).toEqual({ range: [0, end], slots: 1 });
  });

  it.each([
    [0, 6],
    [32, 5],
  ])(
    'a layer alone in its group shares nothing, rewind %i: %i slots; a window not outrun has no scratch',
    (maxRewindLen, end) => {
      const layout = layoutOf(64, 256);
      expect(scratchOf(layout, 0, 0, 256, maxRewindLen)).toEqual({ range: [0, end], slots: end });
      expect(scratchOf(layout, 1, 0, 256, maxRewindLen)).toEqual({ range: null, slots: 0 });
    },
  );

  it('a later chunk has scratch only where it outruns the window itself', () => {
    const layout = layoutOf(64, 256);
    expect(scratchOf(layout, 0, 256, 352)).toEqual({ range: [8, 9], slots: 1 });
    expect(scratchOf(layout, 0, 256, 352, 32)).toEqual({ range: null, slots: 0 });
  });

  it('thirty-two layers put a prompt of 1024 tokens into one slot and the pages of the window', () => {
    const layout = layoutOf(...new Array<number>(32).fill(128));
    expect(scratchOf(layout, 0, 0, 1024)).toEqual({ range: [0, 28], slots: 1 });
  });
});

it('every scratch block is one that the converter finds room for, the last slot too', () => {
  const layout = layoutOf(...new Array<number>(5).fill(ONE_BLOCK));
  const converter = layout.pageIndexConverter(4, 'value');
  const range = { begin: 0, end: 11 };
  const slotIds = Int32Array.of(100, 101, 102);
  expect(layout.scratchSlots(0 as LifecycleId, 11)).toBe(3);
  const indices = converter.convert(new Int32Array(11).fill(-1), { indexMode: 'per_layer', scratch: { range, slotIds } });
  expect([...indices]).toEqual([1001, 1003, 1005, 1007, 1009, 1011, 1013, 1015, 1017, 1019, 1021]);
});
