import type { ComputeStep } from '../../kernel/compute-step.ts';
import { defineKernel, type KernelConstants } from '../../kernel/kernel.ts';
import { packParams } from '../../kernel/params.ts';
import type { SsmShape } from './mamba2-shape.ts';
import { requireSsmOperands, rowGroupsOf, type SsmOperands, slicesOf, ssmParamLayout, ssmParams } from './ssm-operands.ts';
import recurrence from './ssm-recurrence.wgsl';
import entry from './ssm-scan.wgsl';

type SsmScanConstant = 'NUM_HEADS' | 'HEAD_DIM' | 'STATE_SIZE' | 'NUM_GROUPS' | 'ROW_GROUPS' | 'CHUNK';

/** Large enough that the two barriers of a chunk weigh little; more gains nothing and costs occupancy. */
const MAX_CHUNK_TOKENS = 16;
const MAX_WORKGROUP_SIZE = 64;
/** Bytes, the default limit of every WebGPU device. */
const MAX_WORKGROUP_STORAGE = 16_384;

const paramLayout = { numRequests: 'u32', requestStartsOffset: 'u32', ...ssmParamLayout } as const;

/**
 * The recurrence over all tokens of packed requests; see `recordSsmScan` for the operands.
 *
 * Workgroup: `ROW_GROUPS` groups of 4 rows times `ceil(stateSize / 16)` slices of 16 columns of one head of one request, at most 64
 * invocations, each with its 4 x 16 values of the state in registers over all tokens of the request.
 * Dispatch: `numRequests * numHeads * ceil(ceil(headDim / 4) / ROW_GROUPS)` workgroups.
 * Needs 7 storage buffers and up to 16 KiB of workgroup memory, into which `CHUNK` tokens are loaded at a time; default limits.
 *
 * Tokens are taken one after the other, not by the matrix form of Mamba-2 in which the tokens of a chunk are computed together.
 * The result of that form depends on where the chunks begin, so a request that continues from a cached state would not
 * repeat, to the bit, what it computes without the cache. Here it does: heads, rows and requests are what runs in parallel, and a
 * chunk is only what is loaded together.
 * @see ssmReference in mamba2.reference.ts
 */
export const ssmScanKernel = defineKernel({
  label: 'ssm-scan',
  code: `${entry}\n${recurrence}`,
  bindings: {
    params: 'uniform',
    requestStarts: 'read-only-storage',
    xBC: 'read-only-storage',
    dt: 'read-only-storage',
    headParams: 'read-only-storage',
    stateIndex: 'read-only-storage',
    statePages: 'storage',
    y: 'storage',
  },
  constants: { NUM_HEADS: 1, HEAD_DIM: 4, STATE_SIZE: 16, NUM_GROUPS: 1, ROW_GROUPS: 1, CHUNK: MAX_CHUNK_TOKENS },
  workgroupSize: ({ ROW_GROUPS, STATE_SIZE }) => [ROW_GROUPS * slicesOf(STATE_SIZE), 1, 1],
  workgroupStorageBytes: ({ ROW_GROUPS, STATE_SIZE, CHUNK }) => CHUNK * bytesOfChunkToken(ROW_GROUPS, slicesOf(STATE_SIZE)),
  workgroups: ({ numTokens, numRequests }: { numTokens: number; numRequests: number }, { NUM_HEADS, HEAD_DIM, ROW_GROUPS }) =>
    numTokens === 0 ? 0 : numRequests * NUM_HEADS * Math.ceil(rowGroupsOf(HEAD_DIM) / ROW_GROUPS),
});

/** Constants of `ssmScanKernel` for a shape: as large a workgroup and chunk as default limits allow. */
export function ssmScanConstants(shape: SsmShape): KernelConstants<SsmScanConstant> {
  const numSlices = slicesOf(shape.stateSize);
  const numRowGroups = Math.min(rowGroupsOf(shape.headDim), Math.floor(MAX_WORKGROUP_SIZE / numSlices));
  return {
    NUM_HEADS: shape.numHeads,
    HEAD_DIM: shape.headDim,
    STATE_SIZE: shape.stateSize,
    NUM_GROUPS: shape.numGroups,
    ROW_GROUPS: numRowGroups,
    CHUNK: Math.min(MAX_CHUNK_TOKENS, Math.floor(MAX_WORKGROUP_STORAGE / bytesOfChunkToken(numRowGroups, numSlices))),
  };
}

/** B and C of 16 columns a slice, x of 4 rows a row group, step size and decay, and with several slices their read-outs. */
function bytesOfChunkToken(numRowGroups: number, numSlices: number): number {
  return 2 * 64 * numSlices + 16 * numRowGroups + 2 * 4 + 16 * (numSlices > 1 ? numSlices * numRowGroups : 1);
}

/**
 * Adds one dispatch: for every token of every request, in order,
 * `dt = softplus(dt + dtBias); h = exp(-exp(aLog) dt) h + dt x (outer) B; y = h C + dSkip x`,
 * where h starts from the request's state page and is written back to it after the last token.
 *
 * A sequence gives the same `y` and the same state, to the bit on one device, however it is cut into scans and steps and
 * whatever else is packed beside it. Every exponent is <= 0: no input overflows on the way.
 *
 * @throws {KernelError} `kernel-dispatch` when an operand does not fit the shape; nothing was added then
 */
export function recordSsmScan(step: ComputeStep, shape: SsmShape, operands: SsmOperands): void {
  requireSsmOperands(ssmScanKernel.label, shape, operands);
  const { requests, xBC, dt, headParams, state, y } = operands;
  const params = packParams(paramLayout, {
    numRequests: requests.numRequests,
    requestStartsOffset: requests.starts.offsetWords ?? 0,
    ...ssmParams(shape, operands),
  });
  step.dispatch(ssmScanKernel, {
    shape: requests,
    constants: ssmScanConstants(shape),
    bindings: {
      params: step.upload(params),
      requestStarts: requests.starts.buffer,
      xBC: xBC.buffer,
      dt: dt.buffer,
      headParams: headParams.buffer,
      stateIndex: state.pageIndex.buffer,
      statePages: state.pool,
      y: y.buffer,
    },
  });
}
