import { type BufferId, type CacheConfigInput, defineCacheConfig, type LifecycleId } from '@bufferwise/core-policy';
import { readVectors } from '@bufferwise-internal/test-kit';
import { describe, expect, it } from 'vitest';
import { type PageIndexMode, type Rational, StorageLayout } from './index.ts';

interface LayoutCase {
  config: CacheConfigInput;
  grouping: BufferId[][];
  buffers: {
    layerId: number;
    role: string;
    group: number;
    expansion: number;
    size: number;
    buffersInSlot: number;
    offset: number;
    indexInSlot: number;
    scratchPagesPerBlock: number;
  }[];
  scratchUtilization: Rational[];
  scratchSlots: { blocks: number; slots: number }[][];
}

interface ConvertCase {
  config: CacheConfigInput;
  layerId: number;
  role: string;
  base: number[];
  scratch: { begin: number; end: number; slotIds: number[] } | null;
  expected: Partial<Record<PageIndexMode, number[]>>;
}

describe('published layout cases', () => {
  const cases = readVectors<LayoutCase>('layout');

  it('are all there', () => {
    expect(cases.length).toBe(160);
  });

  it.each(cases.map((vector, index) => ({ index, vector })))(
    'case $index gives each buffer its place and each group its scratch',
    ({ vector }) => {
      const layout = StorageLayout.fromConfig(defineCacheConfig(vector.config));
      expect(layout.lifecycles.bufferGrouping).toEqual(vector.grouping);
      const buffers = vector.buffers.map(({ layerId, role }) => {
        const { lifecycleId, expansion, size, offset, indexInSlot, scratchPagesPerBlock } = layout.bufferAttr(layerId, role);
        const buffersInSlot = layout.coalescedBuffer(layerId, role).bufferIds.length;
        return { layerId, role, group: lifecycleId, expansion, size, buffersInSlot, offset, indexInSlot, scratchPagesPerBlock };
      });
      expect(buffers).toEqual(vector.buffers);
      expect(buffers.length).toBe(vector.grouping.flat().length);
      vector.scratchUtilization.forEach((fraction, id) => {
        expect(layout.scratchUtilization(id as LifecycleId)).toEqual(fraction);
      });
      vector.scratchSlots.forEach((counts, id) => {
        expect(counts.map(({ blocks }) => ({ blocks, slots: layout.scratchSlots(id as LifecycleId, blocks) }))).toEqual(counts);
      });
    },
  );
});

describe('published conversion cases', () => {
  const cases = readVectors<ConvertCase>('convert');

  it('are all there, with and without scratch', () => {
    expect(cases.length).toBe(320);
    expect(cases.some(({ scratch }) => scratch !== null)).toBe(true);
  });

  it.each(cases.map((vector, index) => ({ index, vector })))('case $index gives the kernel its indices', ({ vector }) => {
    const converter = StorageLayout.fromConfig(defineCacheConfig(vector.config)).pageIndexConverter(vector.layerId, vector.role);
    const base = Int32Array.from(vector.base);
    const scratch = vector.scratch && {
      range: { begin: vector.scratch.begin, end: vector.scratch.end },
      slotIds: Int32Array.from(vector.scratch.slotIds),
    };
    for (const [mode, expected] of Object.entries(vector.expected)) {
      const indexMode = mode as PageIndexMode;
      expect([...converter.convert(base, { indexMode, scratch })]).toEqual(expected);
      const out = new Int32Array(expected.length);
      expect(converter.convert(base, { indexMode, scratch, out })).toBe(out);
      expect([...out]).toEqual(expected);
    }
  });
});
