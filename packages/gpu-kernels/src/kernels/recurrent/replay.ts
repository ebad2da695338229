import { KernelError } from '../../errors/kernel-error.ts';
import type { ComputeStep } from '../../kernel/compute-step.ts';
import { defineKernel, type KernelConstants } from '../../kernel/kernel.ts';
import type { StorageDtype } from '../../kernel/storage-dtype.ts';
import { numPagesOf, type PagePool, requirePool, requireWords } from './operands.ts';
import type { PackedRequests } from './packed-requests.ts';
import ringRows from './pieces/ring-rows.wgsl';
import {
  bindCall,
  kernelsByVariant,
  MAX_WORKGROUP_STORAGE,
  type RecurrentCall,
  type RecurrentConstant,
  type RecurrentFamily,
  type RecurrentKernel,
  recurrentText,
  requireCall,
  shapeConstants,
  variantName,
} from './recurrence.ts';
import entry from './replay.wgsl';
import { type ReplayRequests, type ReplayRing, ringWords } from './replay-ring.ts';
import { rowGroupsPerWorkgroup } from './scan.ts';
import { rowGroupsOf, type StateShape, slicesOf } from './state-shape.ts';
import type { Words } from './tables.ts';
import { type RecurrentOptions, type RecurrentVariant, variantFor } from './variant.ts';

/** The pages of replay rings, with indices of their own: neither slots nor policy are those of the state. */
export interface RingPages extends Omit<PagePool, 'dtype'> {
  /**
   * `[numRequests] i32`: kernel page index of each request's ring. Without a page (-1, or beyond the pool) a request has the
   * checkpoint and this step's tokens, and its inputs are kept nowhere.
   */
  pageIndex: Words;
}

/** A call whose `requests` are those of `replay`. */
export interface ReplayCall extends RecurrentCall {
  replay: ReplayRequests;
  ringPages: RingPages;
}

type ReplayConstant = RecurrentConstant | 'ROW_GROUPS' | 'RING_ROWS' | 'MAX_TOKENS';
type ReplayVariant = RecurrentVariant & { ringDtype: StorageDtype };

const ownParams = {
  cursorsOffset: 'u32',
  ringIndexOffset: 'u32',
  ringBase: 'u32',
  ringStride: 'u32',
  numRingPages: 'u32',
} as const;

/**
 * A few tokens of each of many requests, from checkpoint and ring; see `recordReplay`.
 *
 * Workgroup and dispatch as those of `scanKernel`, with fewer row groups where many tokens want more workgroup memory.
 * Needs 7 storage buffers (a gated delta net 8), one barrier, and workgroup memory for the read-outs of `MAX_TOKENS` tokens and their
 * dot products with `RING_ROWS` keys; default limits for usual sizes. No two invocations exchange sums, so it takes no subgroups.
 */
export const replayKernel = kernelsByVariant(
  (family: RecurrentFamily, variant: ReplayVariant): RecurrentKernel<ReplayConstant> =>
    defineKernel({
      label: `${family.label} replay ${variantName(variant)}`,
      ...recurrentText(family, variant, {
        params: ownParams,
        storage: { ringPages: ['storage', 'array<u32>'] },
        constants: { RING_F16: variant.ringDtype === 'f16' },
        parts: [ringRows, entry],
      }),
      constants: {
        NUM_HEADS: 1,
        HEAD_DIM: 4,
        STATE_SIZE: 16,
        NUM_GROUPS: 1,
        ROW_GROUPS: 1,
        RING_ROWS: 2,
        MAX_TOKENS: 1,
      },
      workgroupSize: ({ ROW_GROUPS, STATE_SIZE }) => [ROW_GROUPS * slicesOf(STATE_SIZE), 1, 1],
      workgroupStorageBytes: ({ ROW_GROUPS, STATE_SIZE, RING_ROWS, MAX_TOKENS }) =>
        storageBytes(family, ROW_GROUPS, STATE_SIZE, { rows: RING_ROWS, maxTokens: MAX_TOKENS }),
      workgroups: ({ numRequests }: PackedRequests, { NUM_HEADS, HEAD_DIM, ROW_GROUPS }) =>
        numRequests * NUM_HEADS * Math.ceil(rowGroupsOf(HEAD_DIM) / ROW_GROUPS),
    }),
);

function storageBytes({ constants }: RecurrentFamily, rowGroups: number, stateSize: number, { rows, maxTokens }: ReplayRing) {
  const numProbes = constants.DELTA ? 2 : 1;
  const perToken = numProbes * (16 * rowGroups * slicesOf(stateSize) + 4 * rows) + 8 + 16 * rowGroups;
  return 4 * rows + maxTokens * perToken;
}

/** Constants of `replayKernel` for a shape: as many row groups as default limits allow. */
export function replayConstants(family: RecurrentFamily, shape: StateShape, ring: ReplayRing): KernelConstants<ReplayConstant> {
  let rowGroups = rowGroupsPerWorkgroup(shape);
  while (rowGroups > 1 && storageBytes(family, rowGroups, shape.stateSize, ring) > MAX_WORKGROUP_STORAGE) rowGroups--;
  return { ...shapeConstants(shape), ROW_GROUPS: rowGroups, RING_ROWS: ring.rows, MAX_TOKENS: ring.maxTokens };
}

/** The kernel that `recordReplay` takes on a device. */
export function replayKernelFor(
  device: GPUDevice,
  family: RecurrentFamily,
  shape: StateShape,
  stateDtype: StorageDtype,
  ring: ReplayRing,
  options?: RecurrentOptions,
): RecurrentKernel<ReplayConstant> {
  const variant = variantFor(device, shape, stateDtype, { ...options, subgroups: false });
  return replayKernel(family, { ...variant, ringDtype: ring.dtype ?? 'f32' });
}

/**
 * Adds one dispatch: the outputs that a scan of the same tokens would give (not to the bit: sums are taken in another order), from
 * the checkpoint in the request's state page and the rows of its ring. The tokens' own rows are added to the ring.
 *
 * The state is written, to the target page, only for requests that settle (`settlesRing`): it is then the state before this
 * step's tokens. For a Mamba-2 layer with an f32 ring it is, to the bit on one device, what a scan of those tokens would have left.
 *
 * @throws {KernelError} `kernel-dispatch` or `kernel-layout` when an operand does not fit the shape; nothing was added then
 */
export function recordReplay(step: ComputeStep, call: ReplayCall, options?: RecurrentOptions): void {
  const { shape, state, requests, replay, ringPages } = call;
  const { ring } = replay;
  const kernel = replayKernelFor(step.device, call.family, shape, state.dtype ?? 'f32', ring, options);
  requireCall(kernel.label, call);
  if (state.snapshots?.numSnapshots) {
    const message =
      'state.snapshots are taken by scans. Settle the ring into the page that is to have the state: `settle`, targetIndex.';
    throw new KernelError('kernel-dispatch', kernel.label, message);
  }
  const pageWords = ringWords(kernel.label, shape, ring);
  requirePool(kernel.label, 'ring', ringPages, pageWords);
  requireWords(kernel.label, 'ring.pageIndex', ringPages.pageIndex, requests.numRequests);
  requireWords(kernel.label, 'cursors', replay.cursors, 3 * requests.numRequests);
  const { params, bindings } = bindCall(kernel.label, call, {
    layout: ownParams,
    params: {
      ringBase: ringPages.baseWords,
      ringStride: ringPages.strideWords,
      numRingPages: numPagesOf(ringPages, pageWords),
    },
    tables: { cursors: replay.cursors, ringIndex: ringPages.pageIndex },
    bindings: { ringPages: ringPages.pool },
  });
  const constants = replayConstants(call.family, shape, ring);
  step.dispatch(kernel, { shape: requests, constants, bindings: { ...bindings, params: step.upload(params) } });
}
