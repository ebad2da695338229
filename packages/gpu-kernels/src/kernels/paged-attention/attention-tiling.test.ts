import { describe, expect, test } from 'vitest';
import { decodeKernel, decodePartitions } from './decode-kernel.ts';
import { prefillKernel, prefillTiling } from './prefill-kernel.ts';
import { GPU_THREADS, SOFTWARE_THREADS } from './thread-budget.ts';

const DEFAULT_WORKGROUP_BYTES = 16_384;
const DEFAULT_STORAGE_BUFFERS = 8;

const headDims = Array.from({ length: 57 }, (_, i) => 32 + 4 * i);
const groups = [1, 2, 3, 5, 7, 8, 9, 16, 71, 128];
const shapes = headDims.flatMap((headDim) =>
  groups.map((headsPerGroup) => ({ headDim, numKvHeads: 2, numQueryHeads: 2 * headsPerGroup })),
);

describe.each([
  ['gpu', GPU_THREADS],
  ['software', SOFTWARE_THREADS],
])('cut for %s, for every head size and group', (_, budget) => {
  test('the threads of a workgroup hold the rows of its tile, and the slices of a row hold the head', () => {
    for (const shape of shapes) {
      const { workgroup, slices, vecs, rows, headTile, headTiles, queryTile } = prefillTiling(shape, budget);
      const headsPerGroup = shape.numQueryHeads / shape.numKvHeads;
      expect(slices * vecs).toBeGreaterThanOrEqual(shape.headDim / 4);
      expect((slices - 1) * vecs).toBeLessThan(shape.headDim / 4);
      expect(rows * vecs * 8).toBeLessThanOrEqual(budget.numbers);
      expect(rows).toBeGreaterThanOrEqual(1);
      expect(workgroup % slices).toBe(0);
      expect(slices === 1 || rows === 1).toBe(true);
      expect(queryTile).toBeGreaterThanOrEqual(1);
      expect(queryTile * headTile).toBeLessThanOrEqual((workgroup / slices) * rows);
      expect(headTile * headTiles).toBeGreaterThanOrEqual(headsPerGroup);
      expect(headTile * (headTiles - 1)).toBeLessThan(headsPerGroup);
    }
  });

  test('kernels stay within the default limits', () => {
    for (const shape of shapes) {
      for (const kernel of [prefillKernel(shape, prefillTiling(shape, budget)), decodeKernel(shape, budget)]) {
        expect(kernel.workgroupStorageBytes?.({})).toBeLessThanOrEqual(DEFAULT_WORKGROUP_BYTES);
        const kinds: string[] = Object.values(kernel.bindings);
        expect(kinds.filter((kind) => kind !== 'uniform')).toHaveLength(DEFAULT_STORAGE_BUFFERS);
        expect(kernel.workgroupSize({})[0]).toBeLessThanOrEqual(256);
      }
    }
  });

  test('there is a workgroup for every tile of queries, wherever requests begin', () => {
    const shape = { headDim: 32, numKvHeads: 2, numQueryHeads: 4 };
    const tiling = prefillTiling(shape, budget);
    const kernel = prefillKernel(shape, tiling);
    for (const counts of [[1], [tiling.queryTile], [tiling.queryTile + 1], [1, 1, 1], [5, 0, tiling.queryTile * 3 - 1, 7]]) {
      const numTokens = counts.reduce((sum, count) => sum + count, 0);
      const launched = kernel.workgroups({ numTokens, numRequests: counts.length, numKvHeads: 2 }, {}) as readonly number[];
      let start = 0;
      counts.forEach((count, r) => {
        const firstTile = Math.floor(start / tiling.queryTile) + r;
        start += count;
        const nextTile = Math.floor(start / tiling.queryTile) + r + 1;
        expect(firstTile + Math.ceil(count / tiling.queryTile)).toBeLessThanOrEqual(nextTile);
        expect(nextTile).toBeLessThanOrEqual(launched[0]);
      });
      expect(launched.slice(1)).toEqual([2, 1]);
    }
    expect(kernel.workgroups({ numTokens: 0, numRequests: 3, numKvHeads: 2 }, {})).toBe(0);
  });
});

test('decode has a partition for 128 visible keys, at most 64, at least one', () => {
  expect([0, 1, 128, 129, 256, 257, 64 * 128, 64 * 128 + 1, 1e6].map(decodePartitions)).toEqual([1, 1, 1, 2, 2, 3, 64, 64, 64]);
});
