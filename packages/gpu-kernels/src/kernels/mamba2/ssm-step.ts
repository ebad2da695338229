import { KernelError } from '../../errors/kernel-error.ts';
import type { ComputeStep } from '../../kernel/compute-step.ts';
import { defineKernel, type KernelConstants } from '../../kernel/kernel.ts';
import { packParams } from '../../kernel/params.ts';
import type { SsmShape } from './mamba2-shape.ts';
import { requireSsmOperands, rowGroupsOf, type SsmOperands, slicesOf, ssmParamLayout, ssmParams } from './ssm-operands.ts';
import recurrence from './ssm-recurrence.wgsl';
import entry from './ssm-step.wgsl';

type SsmStepConstant = 'NUM_HEADS' | 'HEAD_DIM' | 'STATE_SIZE' | 'NUM_GROUPS';

const MAX_WORKGROUP_SIZE = 64;

const paramLayout = { numRequests: 'u32', ...ssmParamLayout } as const;

/** Row groups of one workgroup; each takes as many invocations as the state has slices. */
function rowGroupsPerWorkgroup(stateSize: number): number {
  return Math.floor(MAX_WORKGROUP_SIZE / slicesOf(stateSize));
}

/**
 * The recurrence for one token of each of many requests; see `recordSsmStep` for the operands.
 *
 * Workgroup: at most 64 invocations, `G = floor(64 / slices)` row groups of 4 rows times `slices = ceil(stateSize / 16)`.
 * Dispatch: `numRequests * ceil(numHeads * ceil(headDim / 4) / G)` workgroups.
 * Needs 6 storage buffers and 1 KiB of workgroup memory; default limits.
 * @see ssmReference in mamba2.reference.ts
 */
export const ssmStepKernel = defineKernel({
  label: 'ssm-step',
  code: `${entry}\n${recurrence}`,
  bindings: {
    params: 'uniform',
    xBC: 'read-only-storage',
    dt: 'read-only-storage',
    headParams: 'read-only-storage',
    stateIndex: 'read-only-storage',
    statePages: 'storage',
    y: 'storage',
  },
  constants: { NUM_HEADS: 1, HEAD_DIM: 4, STATE_SIZE: 16, NUM_GROUPS: 1 },
  workgroupSize: ({ STATE_SIZE }) => [rowGroupsPerWorkgroup(STATE_SIZE) * slicesOf(STATE_SIZE), 1, 1],
  workgroups: ({ numRequests }: { numRequests: number }, { NUM_HEADS, HEAD_DIM, STATE_SIZE }) =>
    numRequests * Math.ceil((NUM_HEADS * rowGroupsOf(HEAD_DIM)) / rowGroupsPerWorkgroup(STATE_SIZE)),
});

/** Constants of `ssmStepKernel` for a shape. */
export function ssmStepConstants(shape: SsmShape): KernelConstants<SsmStepConstant> {
  return { NUM_HEADS: shape.numHeads, HEAD_DIM: shape.headDim, STATE_SIZE: shape.stateSize, NUM_GROUPS: shape.numGroups };
}

/**
 * Adds one dispatch: `recordSsmScan` for requests of one token each, which it repeats to the bit, without what a scan
 * spends on loading chunks.
 *
 * @throws {KernelError} `kernel-dispatch` when a request has another number of tokens than one, or an operand does not fit
 *   the shape; nothing was added then
 */
export function recordSsmStep(step: ComputeStep, shape: SsmShape, operands: SsmOperands): void {
  const { label } = ssmStepKernel;
  requireSsmOperands(label, shape, operands);
  const { requests, xBC, dt, headParams, state, y } = operands;
  if (!requests.oneTokenEach) {
    throw new KernelError(
      'kernel-dispatch',
      label,
      `${requests.numRequests} requests have ${requests.numTokens} tokens, not one each. Take recordSsmScan, or recordMamba2Mixer, which chooses.`,
    );
  }
  const params = packParams(paramLayout, { numRequests: requests.numRequests, ...ssmParams(shape, operands) });
  step.dispatch(ssmStepKernel, {
    shape: requests,
    constants: ssmStepConstants(shape),
    bindings: {
      params: step.upload(params),
      xBC: xBC.buffer,
      dt: dt.buffer,
      headParams: headParams.buffer,
      stateIndex: state.pageIndex.buffer,
      statePages: state.pool,
      y: y.buffer,
    },
  });
}
