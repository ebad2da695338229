import { type BufferConfig, defineCacheConfig, StateError } from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { StorageLayout } from './layout/storage-layout.ts';
import { PageIndexConverter } from './page-index-converter.ts';

const second = new PageIndexConverter({ scale: 4, expansion: 1, layerOffset: 1, scratchPagesPerBlock: 2, rankInLayer: 1 });
const expanded = new PageIndexConverter({ scale: 4, expansion: 2, layerOffset: 1, scratchPagesPerBlock: 2, rankInLayer: 1 });

/** One windowed lifecycle; a list of roles for each layer, all in one coalesced buffer. */
function layoutOf(...roles: string[][]): StorageLayout {
  const buffers = (names: string[]): BufferConfig[] => names.map((role) => ({ role, size: 512 }));
  return StorageLayout.fromConfig(
    defineCacheConfig({
      tokensPerBlock: 4,
      layers: roles.map((names, layerId) => ({ type: 'attention', layerId, slidingWindowSize: 8, buffers: buffers(names) })),
      tiers: [{ tier: 'device', quota: 2 ** 20 }],
    }),
  );
}

function codeOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(StateError);
    return (error as StateError).code;
  }
  return 'nothing thrown';
}

describe('pages', () => {
  it('count from the buffer when shared, from the pool when per layer', () => {
    const base = Int32Array.of(5, -1, 7);
    expect([...second.convert(base)]).toEqual([20, -1, 28]);
    expect([...second.convert(base, { indexMode: 'shared' })]).toEqual([20, -1, 28]);
    expect([...second.convert(base, { indexMode: 'per_layer' })]).toEqual([21, -1, 29]);
  });

  it('expand, holes too', () => {
    expect([...expanded.convert(Int32Array.of(5), { indexMode: 'per_layer' })]).toEqual([42, 43]);
    expect([...expanded.convert(Int32Array.of(-1, 5))]).toEqual([-1, -1, 40, 41]);
  });

  it('of no blocks are none', () => {
    expect(second.convert(new Int32Array(0))).toEqual(new Int32Array(0));
  });

  it('go into what the caller keeps, and leave the rest of it alone', () => {
    const out = new Int32Array(6).fill(-7);
    expect(second.convert(Int32Array.of(5, -1, 7), { out })).toBe(out);
    expect([...out]).toEqual([20, -1, 28, -7, -7, -7]);
    expanded.convertInto(Int32Array.of(5), 'shared', null, out, 3);
    expect([...out]).toEqual([20, -1, 28, 40, 41, -7]);
  });
});

describe('scratch', () => {
  const scratch = { range: { begin: 0, end: 3 }, slotIds: Int32Array.of(20, 21) };
  const holes = Int32Array.of(-1, -1, -1);
  const scratchOf = (layout: StorageLayout, layerId: number, role: string) => [
    ...layout.pageIndexConverter(layerId, role).convert(holes, { indexMode: 'per_layer', scratch }),
  ];

  it('of equal layers lies at the same place for each of them', () => {
    const layout = layoutOf(['key', 'value'], ['key', 'value']);
    for (const layerId of [0, 1]) {
      expect(scratchOf(layout, layerId, 'key')).toEqual([80, 82, 84]);
      expect(scratchOf(layout, layerId, 'value')).toEqual([81, 83, 85]);
    }
  });

  it('of unequal layers crosses from slot to slot, and no two pages of a layer meet', () => {
    const layout = layoutOf(['key', 'value'], ['key']);
    expect(scratchOf(layout, 0, 'key')).toEqual([60, 62, 64]);
    expect(scratchOf(layout, 0, 'value')).toEqual([61, 63, 65]);
    expect(scratchOf(layout, 1, 'key')).toEqual([60, 61, 62]);
  });

  it('takes only its range; pages before and after keep their slots', () => {
    const layout = layoutOf(['key', 'value'], ['key']);
    const base = Int32Array.of(7, -1, 99, -1, 8, -1);
    const options = { indexMode: 'per_layer', scratch: { range: { begin: 1, end: 4 }, slotIds: Int32Array.of(20, 21) } } as const;
    expect([...layout.pageIndexConverter(0, 'value').convert(base, options)]).toEqual([22, 61, 63, 65, 25, -1]);
  });

  it('beyond the blocks that were passed is ignored', () => {
    const options = { indexMode: 'per_layer', scratch: { range: { begin: 1, end: 9 }, slotIds: Int32Array.of(20) } } as const;
    expect([...second.convert(Int32Array.of(2, -1, -1), options)]).toEqual([9, 81, 83]);
    expect([...second.convert(Int32Array.of(2), options)]).toEqual([9]);
    expect([...second.convert(new Int32Array(0), options)]).toEqual([]);
  });

  it('with an empty range changes nothing', () => {
    const options = { indexMode: 'per_layer', scratch: { range: { begin: 1, end: 1 }, slotIds: new Int32Array(0) } } as const;
    expect([...second.convert(Int32Array.of(2, 3), options)]).toEqual([9, 13]);
  });

  it('goes with per-layer indices only', () => {
    expect(codeOf(() => second.convert(holes, { scratch }))).toBe('scratch-needs-per-layer');
    expect(codeOf(() => second.convert(holes, { scratch, indexMode: 'shared' }))).toBe('scratch-needs-per-layer');
    expect(codeOf(() => second.convert(holes, { scratch, indexMode: 'per_layer' }))).toBe('nothing thrown');
    expect(codeOf(() => second.convert(holes, { scratch: null, indexMode: 'shared' }))).toBe('nothing thrown');
  });
});

describe('what cannot be converted', () => {
  it('writes nothing', () => {
    const out = new Int32Array(3).fill(-7);
    const scratch = { range: { begin: 0, end: 3 }, slotIds: Int32Array.of(20) };
    expect(codeOf(() => second.convert(new Int32Array(3), { indexMode: 'per_layer', scratch, out }))).toBe(
      'scratch-slots-missing',
    );
    expect(codeOf(() => second.convert(new Int32Array(4), { out }))).toBe('out-too-small');
    expect(codeOf(() => expanded.convert(new Int32Array(2), { out }))).toBe('out-too-small');
    expect(codeOf(() => second.convertInto(new Int32Array(2), 'shared', null, out, 2))).toBe('out-too-small');
    expect(codeOf(() => second.convertInto(new Int32Array(2), 'shared', null, out, -1))).toBe('out-too-small');
    expect([...out]).toEqual([-7, -7, -7]);
  });
});
