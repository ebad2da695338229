import { defineKernel, type Kernel } from '../../kernel/kernel.ts';
import common from './attention-common.wgsl';
import type { AttentionShape } from './attention-shape.ts';
import decode from './decode.wgsl';
import decodeMerge from './decode-merge.wgsl';
import decodePartition from './decode-partition.wgsl';
import { kernelText } from './kernel-text.ts';
import storageF32 from './kv-storage-f32.wgsl';
import type { ThreadBudget } from './thread-budget.ts';

/** Keys that a workgroup has at a time. */
const TILE_KEYS = 128;

/** Heads that share the reading of keys and values: bounds what a thread and the workgroup memory hold. */
const MAX_HEAD_TILE = 8;

/** Partitions of one request: bounds the workspace, and what the merge goes through. */
const MAX_PARTITIONS = 64;

/**
 * Partitions that decode needs for requests with up to so many visible keys: one for each tile of 128 keys, at most 64; beyond
 * that the partitions become longer.
 */
export function decodePartitions(mostVisibleKeys: number): number {
  return Math.max(1, Math.min(Math.ceil(mostVisibleKeys / TILE_KEYS), MAX_PARTITIONS));
}

/** Words of the partial results of one query head in one partition: the sum of its weighted values, and two numbers about the weights. */
export function partialWords(shape: AttentionShape): number {
  return shape.headDim + 4;
}

export interface DecodeDispatch {
  numRequests: number;
  numQueryHeads: number;
  numKvHeads: number;
  numPartitions: number;
}

export type DecodeKernel = Kernel<keyof typeof decodeBindings, never, DecodeDispatch>;
export type DecodeMergeKernel = Kernel<keyof typeof mergeBindings, never, DecodeDispatch>;

const decodeBindings = {
  params: 'uniform',
  keyPool: 'read-only-storage',
  valuePool: 'read-only-storage',
  keyTable: 'read-only-storage',
  valueTable: 'read-only-storage',
  queries: 'read-only-storage',
  contextLength: 'read-only-storage',
  partials: 'storage',
  output: 'storage',
} as const;

const mergeBindings = {
  params: 'uniform',
  contextLength: 'read-only-storage',
  partials: 'read-only-storage',
  output: 'storage',
} as const;

/**
 * Attention of one query a request over one partition of the keys that it sees. With a single partition it writes `output`, else
 * `partials`, which `decodeMergeKernel` brings together.
 *
 * - `params` uniform, `Params` of attention-common.wgsl.
 * - `keyPool`, `valuePool` f32 (words of a pool), read-only-storage; `keyTable`, `valueTable` `[numRequests, tableStride] i32`,
 *   read-only-storage: see `KvPages`.
 * - `queries` `[numRequests, stride] f32`, of which `[numQueryHeads, headDim]` are read, read-only-storage.
 * - `contextLength` `[numRequests] u32`, read-only-storage.
 * - `partials` `[numRequests, numQueryHeads, numPartitions, headDim + 4] f32`, storage (written).
 * - `output` `[numRequests, numQueryHeads, headDim] f32`, storage (written).
 * - Workgroup n × 1 × 1, n = `max(budget.workgroup, headDim / 4)` rounded up to a power of two: 64 on a GPU.
 * - Dispatch `numPartitions` × `numKvHeads * headTiles` × `numRequests`, headTiles = `ceil(headsPerGroup / 8)`.
 * - Default limits: 8 storage buffers; at most 4.8 KiB of workgroup memory.
 *
 * @see paged-attention.reference.ts
 */
export function decodeKernel(shape: AttentionShape, budget: ThreadBudget): DecodeKernel {
  const workgroup = workgroupOf(shape, budget);
  const headsPerGroup = shape.numQueryHeads / shape.numKvHeads;
  const headTiles = Math.ceil(headsPerGroup / MAX_HEAD_TILE);
  const headTile = Math.ceil(headsPerGroup / headTiles);
  const weights = Math.max(headTile * TILE_KEYS, 4 * workgroup);
  const constants = {
    ...constantsOf(shape, workgroup),
    HEADS_PER_GROUP: headsPerGroup,
    HEAD_TILE: headTile,
    HEAD_TILES: headTiles,
    KEYS_PER_THREAD: TILE_KEYS / workgroup,
    WEIGHTS: weights,
  };
  return defineKernel({
    label: 'paged-attention decode f32',
    code: kernelText(constants, common, storageF32, decodePartition, decode),
    bindings: decodeBindings,
    constants: {},
    workgroupSize: () => [workgroup, 1, 1],
    workgroupStorageBytes: () => 4 * (weights + TILE_KEYS + workgroup + headTile),
    workgroups: ({ numRequests, numKvHeads, numPartitions }: DecodeDispatch) => [
      numPartitions,
      numKvHeads * headTiles,
      numRequests,
    ],
  });
}

/**
 * Brings the partitions of `decodeKernel` together.
 *
 * - `params`, `contextLength`, `output` as there; `partials` as there, read-only-storage.
 * - Workgroup as there, of which `headDim / 4` threads have work.
 * - Dispatch `numRequests * numQueryHeads`, folded over x and y; default limits.
 */
export function decodeMergeKernel(shape: AttentionShape, budget: ThreadBudget): DecodeMergeKernel {
  const workgroup = workgroupOf(shape, budget);
  return defineKernel({
    label: 'paged-attention decode merge',
    code: kernelText(constantsOf(shape, workgroup), common, decodePartition, decodeMerge),
    bindings: mergeBindings,
    constants: {},
    workgroupSize: () => [workgroup, 1, 1],
    workgroups: ({ numRequests, numQueryHeads }: DecodeDispatch) => numRequests * numQueryHeads,
  });
}

/** A power of two of threads, and at least one for each vec4 of the head. */
function workgroupOf(shape: AttentionShape, budget: ThreadBudget): number {
  return Math.max(budget.workgroup, 2 ** Math.ceil(Math.log2(shape.headDim / 4)));
}

function constantsOf(shape: AttentionShape, workgroup: number) {
  return {
    HEAD_DIM: shape.headDim,
    SOFT_CAP: shape.softCap !== undefined,
    WORKGROUP: workgroup,
    TILE_KEYS,
    MAX_PARTITIONS,
  };
}
