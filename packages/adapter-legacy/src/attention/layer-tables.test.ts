import { type ConsumerStep, StepPages } from '@bufferwise/adapter-kit';
import { type AttentionLayerConfig, type BufferId, defineCacheConfig, type LayerGroupId } from '@bufferwise/core-policy';
import type { ComputeStep, StepData } from '@bufferwise/gpu-kernels';
import { type PageSource, type ScratchDesc, StorageLayout } from '@bufferwise/scratch-allocator';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { firstOfLayer, LayerTables } from './layer-tables.ts';

const GROUP = 0 as LayerGroupId;

/** Windowed layers of one group, with so many buffers of so many bytes each. */
function layoutOf(layers: readonly (readonly number[])[]): StorageLayout {
  const configs = layers.map(
    (sizes, layerId): AttentionLayerConfig => ({
      type: 'attention',
      layerId,
      slidingWindowSize: 4,
      buffers: sizes.map((size, i) => ({ role: `buffer ${i}`, size })),
    }),
  );
  return StorageLayout.fromConfig(
    defineCacheConfig({ tokensPerBlock: 4, layers: configs, tiers: [{ tier: 'device', quota: 1 << 20 }] }),
  );
}

const request = (slots: number[], scratch: ScratchDesc | null = null): PageSource => ({
  basePageIndices: () => Int32Array.from(slots),
  ssmBlockBaseIndex: () => -1,
  scratch: () => scratch,
});

/** The tables of a step, and how much of them was uploaded. */
function tablesOf(layout: StorageLayout, sources: readonly PageSource[], bufferIds: readonly BufferId[], maxBlocks: number) {
  const pages = new StepPages(layout, bufferIds);
  pages.fill(sources, maxBlocks);
  const uploads: number[] = [];
  const compute = {
    upload(data: Int32Array) {
      uploads.push(data.length);
      return {} as StepData;
    },
  } as unknown as ComputeStep;
  const requests = sources.map(() => ({ start: 0, numTokens: 1, matched: 0, reusedGroups: new Set<LayerGroupId>() }));
  const step = { requests, pages, poolMemory: () => ({}) } as unknown as ConsumerStep;
  const tables = new LayerTables(layout, step, compute, new Map([[GROUP, layout.lifecycles.bufferGrouping[0][0]]]));
  return { tables, pages, uploads };
}

/** The words at which the pages of a buffer begin, -1 where there is none: as the converter has it, and as the tables do. */
function wordsOf({ tables, pages }: ReturnType<typeof tablesOf>, layout: StorageLayout, { layerId, role }: BufferId) {
  const { entries, baseWords, pageStrideWords } = tables.places(layerId, role);
  const pageWords = layout.pageStride(layerId, role) / 4;
  const expected = Array.from({ length: pages.numRequests }, (_, row) => [...pages.row(layerId, role, row)])
    .flat()
    .map((index) => (index < 0 ? -1 : index * pageWords));
  const found = [...entries].map((entry) => (entry < 0 ? -1 : baseWords + entry * pageStrideWords));
  return { expected, found };
}

describe('layer tables', () => {
  const keyAndValue = [64, 64];

  test('upload one table for all layers and buffers of a group, in whatever sizes', () => {
    const layout = layoutOf([keyAndValue, [64, 64, 16], [128, 64]]);
    const all = layout.lifecycles.bufferGrouping[0];
    const step = tablesOf(layout, [request([3, -1, 5]), request([0])], all, 3);
    for (const id of all) {
      const { found, expected } = wordsOf(step, layout, id);
      expect(found).toEqual(expected);
      expect([...step.tables.places(id.layerId, id.role).entries]).toEqual([3, -1, 5, 0, -1, -1]);
    }
    expect(step.uploads).toEqual([6]);
  });

  test('need the rows of no more than one buffer of a group', () => {
    const layout = layoutOf([keyAndValue, keyAndValue]);
    const all = layout.lifecycles.bufferGrouping[0];
    const few = tablesOf(layout, [request([3, 7])], all.slice(0, 1), 2);
    const many = tablesOf(layout, [request([3, 7])], all, 2);
    for (const { layerId, role } of all) expect(few.tables.places(layerId, role)).toEqual(many.tables.places(layerId, role));
  });

  test('with scratch upload one a layer, which its buffers of one slot share', () => {
    const layout = layoutOf([keyAndValue, keyAndValue]);
    const all = layout.lifecycles.bufferGrouping[0];
    // Four blocks of scratch, two buffers a layer of four in a slot: two slots.
    const scratch = { range: { begin: 0, end: 4 }, slotIds: Int32Array.of(9, 2) };
    const step = tablesOf(layout, [request([-1, -1, -1, -1, 6], scratch), request([4])], all, 5);
    for (const id of all) {
      const { found, expected } = wordsOf(step, layout, id);
      expect(found).toEqual(expected);
    }
    expect(step.uploads).toEqual([10, 10]);
  });

  test('address the same bytes as the converter does buffer by buffer, in every layout without crossing blocks', () => {
    const layers = fc.array(fc.array(fc.constantFrom(32, 64, 96), { minLength: 1, maxLength: 4 }), {
      minLength: 1,
      maxLength: 4,
    });
    const slots = fc.array(fc.integer({ min: -1, max: 40 }), { minLength: 6, maxLength: 6 });
    fc.assert(
      fc.property(layers, slots, fc.option(fc.integer({ min: 0, max: 5 })), (sizes, base, scratchBegin) => {
        const layout = layoutOf(sizes);
        const all = layout.lifecycles.bufferGrouping[0];
        const crosses = all.some(({ layerId, role }) => {
          const { scale, scratchPagesPerBlock } = layout.pageIndexConverter(layerId, role);
          return scale % scratchPagesPerBlock !== 0;
        });
        fc.pre(scratchBegin === null || !crosses);
        const begin = scratchBegin ?? 0;
        const scratch =
          scratchBegin === null
            ? null
            : { range: { begin, end: 6 }, slotIds: Int32Array.from({ length: 6 - begin }, (_, i) => 50 + i) };
        const step = tablesOf(layout, [request(base, scratch)], all, 6);
        for (const id of all) {
          const { found, expected } = wordsOf(step, layout, id);
          expect(found).toEqual(expected);
        }
      }),
    );
  });

  test('find the first buffer of a layer in each slot that it has a part of', () => {
    const layout = layoutOf([keyAndValue, [32, 64, 64, 32]]);
    expect(firstOfLayer(layout, 1, 'buffer 2')).toEqual({ layerId: 1, role: 'buffer 1' });
    expect(firstOfLayer(layout, 1, 'buffer 3')).toEqual({ layerId: 1, role: 'buffer 0' });
  });
});
