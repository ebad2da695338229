import { bindingKinds, bindingText } from '../../kernel/binding-text.ts';
import { defineKernel, type Kernel } from '../../kernel/kernel.ts';
import pagePlaces from '../kv-pages/page-places.wgsl';
import type { FullAttentionShape } from './attention-shape.ts';
import {
  type AttentionVariant,
  enableText,
  keyCountPiece,
  lanesPiece,
  readBindings,
  readPieces,
  variantConstants,
  variantFeatures,
} from './attention-variant.ts';
import decode from './decode.wgsl';
import decodeMerge from './decode-merge.wgsl';
import { kernelText } from './kernel-text.ts';
import common from './pieces/attention-common.wgsl';
import decodePartition from './pieces/decode-partition.wgsl';
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
export function partialWords(shape: FullAttentionShape): number {
  return shape.valueDim + 4;
}

/** How the work of decode is cut. */
export interface DecodeTiling {
  /** Threads of a workgroup: a power of two, and at least one for each vec4 of a value. */
  workgroup: number;
  /** Query heads of one key-value head that a workgroup has; how many such tiles a key-value head needs. */
  headTile: number;
  headTiles: number;
  /** Threads that make the weights of one head; how many neighbours of them speak to each other in a subgroup. */
  headThreads: number;
  lanes: number;
}

export function decodeTiling({ shape, subgroupWidth }: AttentionVariant, budget: ThreadBudget): DecodeTiling {
  const workgroup = Math.max(budget.workgroup, 2 ** Math.ceil(Math.log2(shape.valueDim / 4)));
  const headsPerGroup = shape.numQueryHeads / shape.numKvHeads;
  const headTiles = Math.ceil(headsPerGroup / MAX_HEAD_TILE);
  const headTile = Math.ceil(headsPerGroup / headTiles);
  const most = Math.floor(workgroup / headTile);
  const headThreads = subgroupWidth > 1 ? 2 ** Math.floor(Math.log2(most)) : most;
  return { workgroup, headTile, headTiles, headThreads, lanes: Math.min(subgroupWidth, headThreads) };
}

export interface DecodeDispatch {
  numRequests: number;
  numQueryHeads: number;
  numKvHeads: number;
  numPartitions: number;
}

export type DecodeKernel = Kernel<string, never, DecodeDispatch>;

/**
 * Attention of one query a request over one partition of the keys that it sees. With a single partition it writes the output, else
 * partial results, which `decodeMergeKernel` brings together.
 *
 * - `params` uniform, `Params` of attention-common.wgsl.
 * - `indices` i32, read-only-storage: the page tables `[numRequests, tableStride]`, `contextLength` `[numRequests]`, and the table
 *   of selected blocks `[numRequests]`, at the places that `params` names.
 * - `queries` `[numRequests, stride] f32`, of which `[numQueryHeads, headDim]` are read, read-only-storage.
 * - `keyPool`, `valuePool` (absent where values lie in keys), and for int8 `keyScales`, `valueScales`: words of a pool,
 *   read-only-storage, see `KvPages`. `selection`, where blocks are selected: see `SelectedBlocks`.
 * - `result` storage (written): `[numRequests, numQueryHeads, valueDim] f32` where `numPartitions` is 1, else partial results
 *   `[numRequests, numQueryHeads, numPartitions, valueDim + 4] f32`.
 * - Workgroup `tiling.workgroup` × 1 × 1: 64 on a GPU, 128 for values of more than 256.
 * - Dispatch `numPartitions` × `numKvHeads * headTiles` × `numRequests`, headTiles = `ceil(headsPerGroup / 8)`.
 * - Default limits: at most 8 storage buffers; at most 5.7 KiB of workgroup memory.
 *
 * @see paged-attention.reference.ts
 */
export function decodeKernel(variant: AttentionVariant, budget: ThreadBudget): DecodeKernel {
  const { shape } = variant;
  const { workgroup, headTile, headTiles, headThreads, lanes } = decodeTiling(variant, budget);
  const features = variantFeatures(variant, lanes);
  const weights = Math.max(headTile * TILE_KEYS, 4 * workgroup);
  const valueScales = shape.storage === 'int8' ? TILE_KEYS : 1;
  const constants = {
    ...variantConstants(variant, lanes),
    ...partitionConstants(workgroup),
    HEAD_TILE: headTile,
    HEAD_TILES: headTiles,
    HEAD_THREADS: headThreads,
    KEYS_PER_THREAD: TILE_KEYS / workgroup,
    WEIGHTS: weights,
    VALUE_SCALES: valueScales,
  };
  const bindings = { ...readBindings(variant), result: ['storage', 'array<vec4f>'] as const };
  const pieces = [pagePlaces, common, ...readPieces(variant), lanesPiece(lanes), keyCountPiece(shape), decodePartition, decode];
  return defineKernel({
    label: `paged-attention decode ${shape.storage}`,
    code: enableText(features) + kernelText(constants, bindingText(bindings), ...pieces),
    bindings: bindingKinds(bindings),
    constants: {},
    features,
    workgroupSize: () => [workgroup, 1, 1],
    workgroupStorageBytes: () => 4 * (weights + TILE_KEYS + valueScales + workgroup + headTile + (lanes > 1 ? 1 : 0)),
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
 * - `params`, `indices` as there; `partials` its `result`, read-only-storage.
 * - `output` `[numRequests, numQueryHeads, valueDim] f32`, storage (written).
 * - Workgroup as there, of which `valueDim / 4` threads have work.
 * - Dispatch `numRequests * numQueryHeads`, folded over x and y; default limits.
 */
export function decodeMergeKernel(variant: AttentionVariant, budget: ThreadBudget): DecodeKernel {
  const { shape } = variant;
  const { workgroup } = decodeTiling(variant, budget);
  const bindings = {
    params: ['uniform', 'Params'],
    indices: ['read-only-storage', 'array<i32>'],
    partials: ['read-only-storage', 'array<vec4f>'],
    output: ['storage', 'array<vec4f>'],
  } as const;
  const constants = { ...variantConstants(variant, 1), ...partitionConstants(workgroup) };
  return defineKernel({
    label: 'paged-attention decode merge',
    code: kernelText(constants, bindingText(bindings), pagePlaces, common, keyCountPiece(shape), decodePartition, decodeMerge),
    bindings: bindingKinds(bindings),
    constants: {},
    workgroupSize: () => [workgroup, 1, 1],
    workgroups: ({ numRequests, numQueryHeads }: DecodeDispatch) => numRequests * numQueryHeads,
  });
}

function partitionConstants(workgroup: number) {
  return { WORKGROUP: workgroup, TILE_KEYS, MAX_PARTITIONS };
}
