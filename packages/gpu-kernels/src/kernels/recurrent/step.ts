import { KernelError } from '../../errors/kernel-error.ts';
import type { ComputeStep } from '../../kernel/compute-step.ts';
import { defineKernel } from '../../kernel/kernel.ts';
import type { PackedRequests } from './packed-requests.ts';
import {
  bindCall,
  kernelsByVariant,
  MAX_WORKGROUP_SIZE,
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
import { rowGroupsOf, slicesOf } from './state-shape.ts';
import entry from './step.wgsl';
import { type RecurrentOptions, type RecurrentVariant, variantFor } from './variant.ts';

/** Row groups of one workgroup; each takes as many invocations as the state has slices. */
function rowGroupsPerWorkgroup(stateSize: number): number {
  return Math.floor(MAX_WORKGROUP_SIZE / slicesOf(stateSize));
}

/**
 * The recurrence for one token of each of many requests; see `recordStep`.
 *
 * Workgroup: at most 64 invocations, `G = floor(64 / slices)` row groups of 4 rows times `slices = ceil(stateSize / 16)`.
 * Dispatch: `numRequests * ceil(numHeads * ceil(headDim / 4) / G)` workgroups.
 * Needs 6 storage buffers (a gated delta net 7) and 1 KiB of workgroup memory; default limits.
 */
export const stepKernel = kernelsByVariant(
  (family: RecurrentFamily, variant: RecurrentVariant): RecurrentKernel<RecurrentConstant> =>
    defineKernel({
      label: `${family.label} step ${variantName(variant)}`,
      ...recurrentText(family, variant, { parts: [entry] }),
      constants: { NUM_HEADS: 1, HEAD_DIM: 4, STATE_SIZE: 16, NUM_GROUPS: 1 },
      workgroupSize: ({ STATE_SIZE }) => [rowGroupsPerWorkgroup(STATE_SIZE) * slicesOf(STATE_SIZE), 1, 1],
      workgroupStorageBytes: ({ STATE_SIZE }) => sliceSumBytes(MAX_WORKGROUP_SIZE, STATE_SIZE, variant),
      workgroups: ({ numRequests }: PackedRequests, { NUM_HEADS, HEAD_DIM, STATE_SIZE }) =>
        numRequests * Math.ceil((NUM_HEADS * rowGroupsOf(HEAD_DIM)) / rowGroupsPerWorkgroup(STATE_SIZE)),
    }),
);

/**
 * Adds one dispatch: `recordScan` for requests of one token each, which it repeats to the bit, without what a scan
 * spends on loading chunks.
 *
 * @throws {KernelError} `kernel-dispatch` or `kernel-layout` when a request has another number of tokens than one, snapshots
 *   are wanted, or an operand does not fit the shape; nothing was added then
 */
export function recordStep(step: ComputeStep, call: RecurrentCall, options?: RecurrentOptions): void {
  const { shape, state, requests } = call;
  const kernel = stepKernel(call.family, variantFor(step.device, shape, state.dtype ?? 'f32', options));
  requireCall(kernel.label, call);
  if (!canStep(call)) {
    throw new KernelError(
      'kernel-dispatch',
      kernel.label,
      `${requests.numRequests} requests have ${requests.numTokens} tokens and ${state.snapshots?.numSnapshots ?? 0} snapshots. A step takes one token each and no snapshots: take a scan.`,
    );
  }
  const { params, bindings } = bindCall(kernel.label, call, { layout: {}, params: {}, tables: {} });
  const constants = shapeConstants(shape);
  step.dispatch(kernel, { shape: requests, constants, bindings: { ...bindings, params: step.upload(params) } });
}

/** Whether a step does what a scan of the call would. */
export function canStep({ requests, state }: RecurrentCall): boolean {
  return requests.oneTokenEach && !state.snapshots?.numSnapshots;
}
