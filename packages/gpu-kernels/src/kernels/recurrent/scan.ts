import type { ComputeStep } from '../../kernel/compute-step.ts';
import { defineKernel, type KernelConstants } from '../../kernel/kernel.ts';
import type { PackedRequests } from './packed-requests.ts';
import snapshots from './pieces/snapshots.wgsl';
import {
  bindCall,
  kernelsByVariant,
  MAX_WORKGROUP_SIZE,
  MAX_WORKGROUP_STORAGE,
  type RecurrentCall,
  type RecurrentConstant,
  type RecurrentFamily,
  type RecurrentKernel,
  recurrentText,
  requireCall,
  shapeConstants,
  sliceSumBytes,
  variantName,
} from './recurrence.ts';
import entry from './scan.wgsl';
import { rowGroupsOf, type StateShape, slicesOf } from './state-shape.ts';
import { type RecurrentOptions, type RecurrentVariant, variantFor } from './variant.ts';

type ScanConstant = RecurrentConstant | 'ROW_GROUPS' | 'CHUNK';

/** Large enough that the two barriers of a chunk weigh little; more gains nothing and costs occupancy. */
const MAX_CHUNK_TOKENS = 16;

const ownParams = { snapshotsOffset: 'u32', numSnapshots: 'u32' } as const;

/**
 * The recurrence over all tokens of packed requests; see `recordScan`.
 *
 * Workgroup: `ROW_GROUPS` groups of 4 rows times `ceil(stateSize / 16)` slices of 16 columns of one head of one request, at most 64
 * invocations, each with its 4 x 16 values of the state in registers over all tokens of the request.
 * Dispatch: `numRequests * numHeads * ceil(ceil(headDim / 4) / ROW_GROUPS)` workgroups.
 * Needs 6 storage buffers (a gated delta net 7) and up to 16 KiB of workgroup memory, into which `CHUNK` tokens are loaded at a
 * time; default limits.
 *
 * Tokens are taken one after the other, not by the matrix form in which the tokens of a chunk are computed together.
 * The result of that form depends on where the chunks begin, so a request that continues from a cached state would not
 * repeat, to the bit, what it computes without the cache. Here it does: heads, rows and requests are what runs in parallel, and a
 * chunk is only what is loaded together. So the state is there after every token, and a snapshot of it is a write.
 */
export const scanKernel = kernelsByVariant(
  (family: RecurrentFamily, variant: RecurrentVariant): RecurrentKernel<ScanConstant> =>
    defineKernel({
      label: `${family.label} scan ${variantName(variant)}`,
      ...recurrentText(family, variant, { params: ownParams, parts: [snapshots, entry] }),
      constants: { NUM_HEADS: 1, HEAD_DIM: 4, STATE_SIZE: 16, NUM_GROUPS: 1, ROW_GROUPS: 1, CHUNK: MAX_CHUNK_TOKENS },
      workgroupSize: ({ ROW_GROUPS, STATE_SIZE }) => [ROW_GROUPS * slicesOf(STATE_SIZE), 1, 1],
      workgroupStorageBytes: ({ ROW_GROUPS, STATE_SIZE, CHUNK }) =>
        CHUNK * bytesOfChunkToken(ROW_GROUPS, slicesOf(STATE_SIZE), variant) +
        sliceSumBytes(ROW_GROUPS * slicesOf(STATE_SIZE), STATE_SIZE, variant),
      workgroups: ({ numTokens, numRequests }: PackedRequests, { NUM_HEADS, HEAD_DIM, ROW_GROUPS }) =>
        numTokens === 0 ? 0 : numRequests * NUM_HEADS * Math.ceil(rowGroupsOf(HEAD_DIM) / ROW_GROUPS),
    }),
);

/** Row groups of a workgroup of scan and replay. */
export function rowGroupsPerWorkgroup(shape: StateShape): number {
  return Math.min(rowGroupsOf(shape.headDim), Math.floor(MAX_WORKGROUP_SIZE / slicesOf(shape.stateSize)));
}

/** Constants of `scanKernel` for a shape: as large a workgroup and chunk as default limits allow. */
export function scanConstants(shape: StateShape, variant: RecurrentVariant): KernelConstants<ScanConstant> {
  const numSlices = slicesOf(shape.stateSize);
  const rowGroups = rowGroupsPerWorkgroup(shape);
  const free = MAX_WORKGROUP_STORAGE - sliceSumBytes(rowGroups * numSlices, shape.stateSize, variant);
  const chunk = Math.min(MAX_CHUNK_TOKENS, Math.floor(free / bytesOfChunkToken(rowGroups, numSlices, variant)));
  return { ...shapeConstants(shape), ROW_GROUPS: rowGroups, CHUNK: chunk };
}

/** Key and query of 16 columns a slice, 4 values a row group, scale, decay and norms, and read-outs that are summed late. */
function bytesOfChunkToken(numRowGroups: number, numSlices: number, { subgroups }: RecurrentVariant): number {
  const lateSums = numSlices > 1 && !subgroups ? numSlices * numRowGroups : 1;
  return 2 * 64 * numSlices + 16 * numRowGroups + 4 * 4 + 16 * lateSums;
}

/**
 * Adds one dispatch: for every token of every request, in order, the family's recurrence, where the state starts from the
 * request's page and goes to its target page after the last token, and to the pages of snapshots after theirs.
 * Requests without tokens leave all pages as they are.
 *
 * A sequence gives the same `y` and the same f32 state, to the bit on one device, however it is cut into scans and steps and
 * whatever else is packed beside it. Every exponent is <= 0: no input overflows on the way.
 *
 * @throws {KernelError} `kernel-dispatch` or `kernel-layout` when an operand does not fit the shape; nothing was added then
 */
export function recordScan(step: ComputeStep, call: RecurrentCall, options?: RecurrentOptions): void {
  const { shape, state, requests } = call;
  const variant = variantFor(step.device, shape, state.dtype ?? 'f32', options);
  const kernel = scanKernel(call.family, variant);
  requireCall(kernel.label, call);
  const { params, bindings } = bindCall(kernel.label, call, {
    layout: ownParams,
    params: { numSnapshots: state.snapshots?.numSnapshots ?? 0 },
    tables: { snapshots: state.snapshots?.words ?? requests.starts },
  });
  const constants = scanConstants(shape, variant);
  step.dispatch(kernel, { shape: requests, constants, bindings: { ...bindings, params: step.upload(params) } });
}
