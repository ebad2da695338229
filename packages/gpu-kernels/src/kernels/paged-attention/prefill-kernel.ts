import { bindingKinds, bindingText } from '../../kernel/binding-text.ts';
import { defineKernel, type Kernel } from '../../kernel/kernel.ts';
import pagePlaces from '../kv-pages/page-places.wgsl';
import {
  type AttentionVariant,
  enableText,
  lanesPiece,
  readBindings,
  readPieces,
  variantConstants,
  variantFeatures,
} from './attention-variant.ts';
import { kernelText } from './kernel-text.ts';
import common from './pieces/attention-common.wgsl';
import prefill from './prefill.wgsl';
import type { ThreadBudget } from './thread-budget.ts';

/** How the work of prefill is cut: what a thread holds, what a workgroup has. */
export interface PrefillTiling {
  /** Threads of a workgroup. */
  workgroup: number;
  /**
   * Neighbouring threads that share a row, and the vec4 of a key and of a value that each of them has. `slices * vecs >= headDim / 4`,
   * `slices * sumVecs >= valueDim / 4`.
   */
  slices: number;
  vecs: number;
  sumVecs: number;
  /** Rows (one query of one head) of each thread. 1 where `slices` is more than 1. */
  rows: number;
  /** Query heads of one key-value head that a workgroup has; how many such tiles a key-value head needs. */
  headTile: number;
  headTiles: number;
  /** Queries of one request that a workgroup has. */
  queryTile: number;
  /** Threads that share a row speak to each other through workgroup memory, for want of subgroups that hold them. */
  sharedScores: boolean;
  /** Keys between two barriers, where scores are shared; else all keys of a page. */
  keyBatch: number;
}

const KEY_BATCH = 8;
const WHOLE_PAGE = 2 ** 30;

export function prefillTiling({ shape, subgroupWidth }: AttentionVariant, budget: ThreadBudget): PrefillTiling {
  const { numbers, workgroup } = budget;
  let slices = 1;
  while (rowNumbers(shape, slices) > numbers) slices *= 2;
  const vecs = Math.ceil(shape.headDim / 4 / slices);
  const sumVecs = Math.ceil(shape.valueDim / 4 / slices);
  const rows = slices > 1 ? 1 : Math.floor(numbers / rowNumbers(shape, 1));
  const rowsPerWorkgroup = (workgroup / slices) * rows;
  const headsPerGroup = shape.numQueryHeads / shape.numKvHeads;
  const headTiles = Math.ceil(headsPerGroup / rowsPerWorkgroup);
  const headTile = Math.ceil(headsPerGroup / headTiles);
  const queryTile = Math.floor(rowsPerWorkgroup / headTile);
  const sharedScores = slices > subgroupWidth;
  const keyBatch = sharedScores ? KEY_BATCH : WHOLE_PAGE;
  return { workgroup, slices, vecs, sumVecs, rows, headTile, headTiles, queryTile, sharedScores, keyBatch };
}

/** Numbers that a thread holds of a row: its part of the query, and of the sum. */
function rowNumbers({ headDim, valueDim }: AttentionVariant['shape'], slices: number): number {
  return 4 * (Math.ceil(headDim / 4 / slices) + Math.ceil(valueDim / 4 / slices));
}

export interface PrefillDispatch {
  numTokens: number;
  numRequests: number;
  numKvHeads: number;
}

export type PrefillKernel = Kernel<string, never, PrefillDispatch>;

/**
 * Attention of packed chunks of several requests over paged keys and values, causal, with a sliding window and sinks, or of
 * selected blocks.
 *
 * - `params`, `queries` `[numTokens, ..]`, `keyPool`, `valuePool`, `keyScales`, `valueScales`, `selection`: as of `decodeKernel`.
 * - `indices` as there, and `queryStart` `[numRequests + 1]`.
 * - `output` `[numTokens, numQueryHeads, valueDim] f32`, storage (written).
 * - Workgroup `tiling.workgroup × 1 × 1`.
 * - Dispatch `floor(numTokens / queryTile) + numRequests` × `numKvHeads * headTiles` × 1. Up to one workgroup for each request and head
 *   finds no queries and returns.
 * - Default limits: at most 8 storage buffers; workgroup memory 4 bytes, or `8 * keyBatch * workgroup` where scores are shared.
 *
 * @see paged-attention.reference.ts
 */
export function prefillKernel(variant: AttentionVariant, tiling: PrefillTiling): PrefillKernel {
  const { workgroup, slices, vecs, sumVecs, rows, headTile, headTiles, queryTile, sharedScores, keyBatch } = tiling;
  const lanes = sharedScores ? 1 : slices;
  const features = variantFeatures(variant, lanes);
  const partScores = sharedScores ? 2 * keyBatch * workgroup : 1;
  const constants = {
    ...variantConstants(variant, lanes),
    WORKGROUP: workgroup,
    SLICES: slices,
    VECS: vecs,
    SUM_VECS: sumVecs,
    ROWS: rows,
    HEAD_TILE: headTile,
    HEAD_TILES: headTiles,
    QUERY_TILE: queryTile,
    SHARED_SCORES: sharedScores,
    KEY_BATCH: keyBatch,
    PART_SCORES: partScores,
  };
  const bindings = { ...readBindings(variant), output: ['storage', 'array<vec4f>'] as const };
  const pieces = [pagePlaces, common, ...readPieces(variant), lanesPiece(lanes), prefill];
  return defineKernel({
    label: `paged-attention prefill ${variant.shape.storage}`,
    code: enableText(features) + kernelText(constants, bindingText(bindings), ...pieces),
    bindings: bindingKinds(bindings),
    constants: {},
    features,
    workgroupSize: () => [workgroup, 1, 1],
    workgroupStorageBytes: () => 4 * (partScores + (lanes > 1 ? 1 : 0)),
    workgroups: ({ numTokens, numRequests, numKvHeads }: PrefillDispatch) =>
      numTokens === 0 ? 0 : [Math.floor(numTokens / queryTile) + numRequests, numKvHeads * headTiles, 1],
  });
}
