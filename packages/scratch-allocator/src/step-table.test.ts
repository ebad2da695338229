import { defineCacheConfig, type LayerConfig, type LifecycleId, StateError, UnknownBufferError } from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { StorageLayout } from './layout/storage-layout.ts';
import type { ScratchDesc } from './scratch/scratch-desc.ts';
import { type PageSource, StepTable } from './step-table.ts';

const layers: LayerConfig[] = [
  {
    type: 'attention',
    layerId: 0,
    buffers: [
      { role: 'key', size: 64 },
      { role: 'value', size: 64 },
      { role: 'index', size: 32, tokensPerBlockOverride: 2 },
    ],
  },
  { type: 'attention', layerId: 1, slidingWindowSize: 4, buffers: [{ role: 'key', size: 64 }] },
  { type: 'attention', layerId: 2, slidingWindowSize: 4, buffers: [{ role: 'key', size: 64 }] },
  {
    type: 'ssm',
    layerId: 3,
    buffers: [
      { role: 'ssm_state', size: 64 },
      { role: 'conv_state', size: 64 },
    ],
  },
];
const layout = StorageLayout.fromConfig(
  defineCacheConfig({ tokensPerBlock: 4, layers, tiers: [{ tier: 'device', quota: 2 ** 20 }] }),
);
const FULL = 0 as LifecycleId;
const WINDOW = 1 as LifecycleId;
const STATE = 2 as LifecycleId;
const bufferIds = layout.lifecycles.bufferGrouping.flat();

function source(pages: { full: number[]; window: number[]; state: number; scratch?: ScratchDesc }): PageSource {
  return {
    basePageIndices: (id) => Int32Array.from(id === FULL ? pages.full : pages.window),
    ssmBlockBaseIndex: () => pages.state,
    scratch: (id) => (id === WINDOW ? (pages.scratch ?? null) : null),
  };
}

const first = source({
  full: [3, 4, 5],
  window: [-1, -1, 9],
  state: 2,
  scratch: { range: { begin: 0, end: 2 }, slotIds: Int32Array.of(7) },
});
const other = source({ full: [6], window: [1], state: 0 });

/** The rows of a buffer, request by request. */
function rowsOf(table: StepTable, buffer: number, requests: number, maxBlocks: number, out: Int32Array): number[][] {
  const at = table.rowsAt(buffer, requests, maxBlocks);
  const length = table.rowLength(buffer, maxBlocks);
  return Array.from({ length: requests }, (_, request) => [...out.subarray(at + request * length, at + (request + 1) * length)]);
}

describe('StepTable', () => {
  it('holds every index of a step: buffers, in them requests, in them blocks', () => {
    const table = new StepTable(layout, bufferIds);
    const length = table.length(2, 4);
    const out = new Int32Array(length + 2).fill(-7);
    expect(table.fill([first, other], 4, out)).toBe(length);
    expect([...out.subarray(length)]).toEqual([-7, -7]);
    const rows = bufferIds.map((_, buffer) => rowsOf(table, buffer, 2, 4, out));
    expect(bufferIds.map(({ layerId, role }) => `${layerId}.${role}`)).toEqual([
      '0.key',
      '0.value',
      '0.index',
      '1.key',
      '2.key',
      '3.ssm_state',
      '3.conv_state',
    ]);
    expect(rows).toEqual([
      [
        [9, 12, 15, -1],
        [18, -1, -1, -1],
      ],
      [
        [10, 13, 16, -1],
        [19, -1, -1, -1],
      ],
      [
        [22, 23, 28, 29, 34, 35, -1, -1],
        [40, 41, -1, -1, -1, -1, -1, -1],
      ],
      [
        [14, 15, 18, -1],
        [2, -1, -1, -1],
      ],
      [
        [14, 15, 19, -1],
        [3, -1, -1, -1],
      ],
      [[4], [0]],
      [[5], [1]],
    ]);
    expect(rows.flat(2).length).toBe(length);
  });

  it('says the same as the converter, buffer by buffer', () => {
    const table = new StepTable(layout, bufferIds);
    const out = new Int32Array(table.length(1, 3));
    table.fill([first], 3, out);
    bufferIds.forEach(({ layerId, role }, buffer) => {
      const { lifecycleId } = layout.bufferAttr(layerId, role);
      const base = lifecycleId === STATE ? Int32Array.of(first.ssmBlockBaseIndex(STATE)) : first.basePageIndices(lifecycleId);
      const scratch = lifecycleId === STATE ? null : first.scratch(lifecycleId);
      expect(rowsOf(table, buffer, 1, 3, out)[0]).toEqual([
        ...layout.pageIndexConverter(layerId, role).convert(base, { indexMode: 'per_layer', scratch }),
      ]);
    });
  });

  it('gives the buffers of a coalesced buffer one set of rows when they share indices', () => {
    const table = new StepTable(layout, bufferIds, 'shared');
    const out = new Int32Array(table.length(1, 2));
    expect(out.length).toBe(2 + 4 + 2 + 1);
    table.fill([other], 2, out);
    expect(bufferIds.map((_, buffer) => rowsOf(table, buffer, 1, 2, out)[0])).toEqual([
      [18, -1],
      [18, -1],
      [36, 37, -1, -1],
      [2, -1],
      [2, -1],
      [0],
      [0],
    ]);
    expect(table.rowsAt(1, 1, 2)).toBe(table.rowsAt(0, 1, 2));
  });

  it('writes nothing when it cannot write all', () => {
    const out = new Int32Array(200).fill(-7);
    const codes = [
      () => new StepTable(layout, bufferIds, 'shared').fill([other, first], 4, out),
      () => new StepTable(layout, bufferIds).fill([other, first], 2, out),
      () => new StepTable(layout, bufferIds).fill([other], 400, out),
      () => new StepTable(layout, bufferIds).rowsAt(7, 1, 1),
    ].map((call) => {
      try {
        call();
      } catch (error) {
        expect(error).toBeInstanceOf(StateError);
        return (error as StateError).code;
      }
      return 'nothing thrown';
    });
    expect(codes).toEqual(['scratch-needs-per-layer', 'too-many-blocks', 'out-too-small', 'unknown-table-buffer']);
    expect(out.every((entry) => entry === -7)).toBe(true);
  });

  it('can be filled again after a refusal, and with fewer requests', () => {
    const table = new StepTable(layout, bufferIds);
    const out = new Int32Array(table.length(2, 3));
    expect(() => table.fill([other, first], 2, out)).toThrow(StateError);
    table.fill([other, first], 3, out);
    table.fill([other], 3, out);
    expect(rowsOf(table, 0, 1, 3, out)).toEqual([[18, -1, -1]]);
  });

  it('of no requests or no buffers is empty', () => {
    expect(new StepTable(layout, bufferIds).fill([], 4, new Int32Array(0))).toBe(0);
    expect(new StepTable(layout, []).fill([first], 4, new Int32Array(0))).toBe(0);
  });

  it('knows only buffers of its layout', () => {
    expect(() => new StepTable(layout, [{ layerId: 0, role: 'latent' }])).toThrow(UnknownBufferError);
  });
});
