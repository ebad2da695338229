import { describe, expect, test } from 'vitest';
import { type AttentionShape, fullAttentionShape, latentAttention } from './attention-shape.ts';
import { type AttentionVariant, variantOf } from './attention-variant.ts';
import { decodeKernel, decodePartitions, decodeTiling } from './decode-kernel.ts';
import { prefillKernel, prefillTiling } from './prefill-kernel.ts';
import { GPU_THREADS, SOFTWARE_THREADS } from './thread-budget.ts';

const DEFAULT_WORKGROUP_BYTES = 16_384;
const DEFAULT_STORAGE_BUFFERS = 8;

const headDims = Array.from({ length: 63 }, (_, i) => 8 + 4 * i);
const groups = [1, 2, 3, 5, 7, 8, 9, 16, 71, 128];
const heads = groups.map((headsPerGroup) => ({ numKvHeads: 2, numQueryHeads: 2 * headsPerGroup }));

const variant = (shape: AttentionShape, features: readonly string[] = []): AttentionVariant =>
  variantOf(fullAttentionShape(shape), new Set(features), 32);

const variants: readonly AttentionVariant[] = [
  ...headDims.flatMap((headDim) => heads.map((some) => variant({ ...some, headDim }))),
  ...headDims.flatMap((headDim) => heads.map((some) => variant({ ...some, headDim }, ['subgroups']))),
  ...heads.map((some) => variant({ ...some, headDim: 192, valueDim: 128, storage: 'int8', selectsBlocks: true })),
  ...heads.map((some) => variant({ ...some, headDim: 256, storage: 'f16', learnedSinks: true }, ['shader-f16', 'subgroups'])),
  ...[1, 16, 128].flatMap((numQueryHeads) =>
    (['f32', 'int8'] as const).map((storage) => {
      const latent = latentAttention({ numQueryHeads, latentDim: 512, rotatedDim: 64, scale: 0.1 });
      return variant({ ...latent, storage, selectsBlocks: true }, ['subgroups']);
    }),
  ),
];

test('features are used where the device has them, and asked for where they are used', () => {
  const shape = { numQueryHeads: 2, numKvHeads: 1, headDim: 128, storage: 'f16' } as const;
  const kernelsOf = (features: readonly string[]) => {
    const some = variant(shape, features);
    return [prefillKernel(some, prefillTiling(some, GPU_THREADS)), decodeKernel(some, GPU_THREADS)];
  };
  for (const { features, code } of kernelsOf([])) {
    expect(features).toEqual([]);
    expect(code).not.toMatch(/enable|subgroup[A-Z]|<f16>/);
  }
  for (const { features, code } of kernelsOf(['shader-f16', 'subgroups'])) {
    expect(features).toEqual(['shader-f16', 'subgroups']);
    expect(code.startsWith('enable f16;\nenable subgroups;\n')).toBe(true);
  }
});

describe.each([
  ['gpu', GPU_THREADS],
  ['software', SOFTWARE_THREADS],
])('cut for %s, for every head size and group', (_, budget) => {
  test('the threads of a workgroup hold the rows of its tile, and the slices of a row hold the head', () => {
    for (const some of variants) {
      const { shape } = some;
      const { workgroup, slices, vecs, sumVecs, rows, headTile, headTiles, queryTile } = prefillTiling(some, budget);
      const headsPerGroup = shape.numQueryHeads / shape.numKvHeads;
      expect(slices * vecs).toBeGreaterThanOrEqual(shape.headDim / 4);
      expect(slices * sumVecs).toBeGreaterThanOrEqual(shape.valueDim / 4);
      expect((slices - 1) * vecs).toBeLessThan(shape.headDim / 4);
      expect(rows * (vecs + sumVecs) * 4).toBeLessThanOrEqual(budget.numbers);
      expect(rows).toBeGreaterThanOrEqual(1);
      expect(workgroup % slices).toBe(0);
      expect(slices === 1 || rows === 1).toBe(true);
      expect(queryTile).toBeGreaterThanOrEqual(1);
      expect(queryTile * headTile).toBeLessThanOrEqual((workgroup / slices) * rows);
      expect(headTile * headTiles).toBeGreaterThanOrEqual(headsPerGroup);
      expect(headTile * (headTiles - 1)).toBeLessThan(headsPerGroup);
    }
  });

  test('the threads of a head in decode are cut into whole subgroups', () => {
    for (const some of variants) {
      const { workgroup, headTile, headThreads, lanes } = decodeTiling(some, budget);
      expect(headThreads).toBeGreaterThanOrEqual(1);
      expect(headThreads * headTile).toBeLessThanOrEqual(workgroup);
      expect(headThreads % lanes).toBe(0);
      expect(some.subgroupWidth % lanes).toBe(0);
      expect(workgroup * 4).toBeGreaterThanOrEqual(some.shape.valueDim);
      expect(128 % workgroup).toBe(0);
    }
  });

  test('kernels stay within the default limits', () => {
    for (const some of variants) {
      for (const kernel of [prefillKernel(some, prefillTiling(some, budget)), decodeKernel(some, budget)]) {
        expect(kernel.workgroupStorageBytes?.({})).toBeLessThanOrEqual(DEFAULT_WORKGROUP_BYTES);
        const kinds: string[] = Object.values(kernel.bindings);
        expect(kinds.filter((kind) => kind !== 'uniform').length).toBeLessThanOrEqual(DEFAULT_STORAGE_BUFFERS);
        expect(kernel.workgroupSize({})[0]).toBeLessThanOrEqual(256);
      }
    }
  });

  test('there is a workgroup for every tile of queries, wherever requests begin', () => {
    const some = variant({ headDim: 32, numKvHeads: 2, numQueryHeads: 4 });
    const tiling = prefillTiling(some, budget);
    const kernel = prefillKernel(some, tiling);
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
