import { defineKernel, type Kernel } from '../../kernel/kernel.ts';
import common from './attention-common.wgsl';
import type { AttentionShape } from './attention-shape.ts';
import { kernelText } from './kernel-text.ts';
import storageF32 from './kv-storage-f32.wgsl';
import prefill from './prefill.wgsl';
import type { ThreadBudget } from './thread-budget.ts';

/** How the work of prefill is cut: what a thread holds, what a workgroup has. */
export interface PrefillTiling {
  /** Threads of a workgroup. */
  workgroup: number;
  /** Neighbouring threads that share a row, and the vec4 of a head that each of them has. `slices * vecs >= headDim / 4`. */
  slices: number;
  vecs: number;
  /** Rows (one query of one head) of each thread. 1 where `slices` is more than 1. */
  rows: number;
  /** Query heads of one key-value head that a workgroup has; how many such tiles a key-value head needs. */
  headTile: number;
  headTiles: number;
  /** Queries of one request that a workgroup has. */
  queryTile: number;
  /** Keys between two barriers, where rows are shared; else all keys of a page. */
  keyBatch: number;
}

const KEY_BATCH = 8;
const WHOLE_PAGE = 2 ** 30;

export function prefillTiling(shape: AttentionShape, budget: ThreadBudget): PrefillTiling {
  const { numbers, workgroup } = budget;
  const headVecs = shape.headDim / 4;
  const vecNumbers = 8; // A vec4 of the query, and one of its sum.
  let slices = 1;
  while (Math.ceil(headVecs / slices) * vecNumbers > numbers) slices *= 2;
  const vecs = Math.ceil(headVecs / slices);
  const rows = slices > 1 ? 1 : Math.floor(numbers / (vecs * vecNumbers));
  const rowsPerWorkgroup = (workgroup / slices) * rows;
  const headsPerGroup = shape.numQueryHeads / shape.numKvHeads;
  const headTiles = Math.ceil(headsPerGroup / rowsPerWorkgroup);
  const headTile = Math.ceil(headsPerGroup / headTiles);
  const queryTile = Math.floor(rowsPerWorkgroup / headTile);
  return { workgroup, slices, vecs, rows, headTile, headTiles, queryTile, keyBatch: slices > 1 ? KEY_BATCH : WHOLE_PAGE };
}

export interface PrefillDispatch {
  numTokens: number;
  numRequests: number;
  numKvHeads: number;
}

export type PrefillKernel = Kernel<keyof typeof bindings, never, PrefillDispatch>;

const bindings = {
  params: 'uniform',
  keyPool: 'read-only-storage',
  valuePool: 'read-only-storage',
  keyTable: 'read-only-storage',
  valueTable: 'read-only-storage',
  queries: 'read-only-storage',
  queryStart: 'read-only-storage',
  contextLength: 'read-only-storage',
  output: 'storage',
} as const;

/**
 * Attention of packed chunks of several requests over paged keys and values, causal, with a sliding window and sinks.
 *
 * - `params` uniform, `Params` of attention-common.wgsl.
 * - `keyPool`, `valuePool` f32 (words of a pool), read-only-storage; `keyTable`, `valueTable` `[numRequests, tableStride] i32`,
 *   read-only-storage: see `KvPages`.
 * - `queries` `[numTokens, stride] f32`, of which `[numQueryHeads, headDim]` are read, read-only-storage.
 * - `queryStart` `[numRequests + 1] u32`, `contextLength` `[numRequests] u32`, read-only-storage.
 * - `output` `[numTokens, numQueryHeads, headDim] f32`, storage (written).
 * - Workgroup `tiling.workgroup × 1 × 1`.
 * - Dispatch `floor(numTokens / queryTile) + numRequests` × `numKvHeads * headTiles` × 1. Up to one workgroup for each request and head
 *   finds no queries and returns.
 * - Default limits: 8 storage buffers; workgroup memory 4 bytes, or `8 * keyBatch * workgroup` where threads share a row.
 *
 * @see paged-attention.reference.ts
 */
export function prefillKernel(shape: AttentionShape, tiling: PrefillTiling): PrefillKernel {
  const { workgroup, slices, vecs, rows, headTile, headTiles, queryTile, keyBatch } = tiling;
  const partScores = slices > 1 ? 2 * keyBatch * workgroup : 1;
  const constants = {
    HEAD_DIM: shape.headDim,
    HEADS_PER_GROUP: shape.numQueryHeads / shape.numKvHeads,
    SOFT_CAP: shape.softCap !== undefined,
    WORKGROUP: workgroup,
    SLICES: slices,
    VECS: vecs,
    ROWS: rows,
    HEAD_TILE: headTile,
    HEAD_TILES: headTiles,
    QUERY_TILE: queryTile,
    KEY_BATCH: keyBatch,
    PART_SCORES: partScores,
  };
  return defineKernel({
    label: 'paged-attention prefill f32',
    code: kernelText(constants, common, storageF32, prefill),
    bindings,
    constants: {},
    workgroupSize: () => [workgroup, 1, 1],
    workgroupStorageBytes: () => 4 * partScores,
    workgroups: ({ numTokens, numRequests, numKvHeads }: PrefillDispatch) =>
      numTokens === 0 ? 0 : [Math.floor(numTokens / queryTile) + numRequests, numKvHeads * headTiles, 1],
  });
}
