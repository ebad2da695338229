import type { ComputeContext } from '../../kernel/compute-context.ts';
import type { ComputeStep } from '../../kernel/compute-step.ts';
import { causalConvConstants, causalConvKernel, recordCausalConv } from './causal-conv.ts';
import { type Mamba2Shape, mamba2Layout } from './mamba2-shape.ts';
import { type RequestPages, requireRows, type TokenRows, type Words } from './operands.ts';
import type { PackedRequests } from './packed-requests.ts';
import { requireSsmOperands } from './ssm-operands.ts';
import { recordSsmScan, ssmScanConstants, ssmScanKernel } from './ssm-scan.ts';
import { recordSsmStep, ssmStepConstants, ssmStepKernel } from './ssm-step.ts';

export { type CausalConvOperands, type CausalConvShape, causalConvKernel, recordCausalConv } from './causal-conv.ts';
export { type Mamba2Layout, type Mamba2Shape, mamba2Layout, type SsmShape } from './mamba2-shape.ts';
export type { RequestPages, TokenRows, Words } from './operands.ts';
export { type PackedRequests, packRequests } from './packed-requests.ts';
export { type HeadParams, packHeadParams, type SsmOperands } from './ssm-operands.ts';
export { recordSsmScan, ssmScanKernel } from './ssm-scan.ts';
export { recordSsmStep, ssmStepKernel } from './ssm-step.ts';

export interface Mamba2MixerOperands {
  requests: PackedRequests;
  /** `[numTokens, rowWords] f32`, read: rows `[z | x | B | C | dt]` of the input projection; `offsetWords` is where z begins. */
  projection: TokenRows;
  /** `[numChannels, convWidth] f32`, read. */
  convWeight: Words;
  /** `[numChannels] f32`, read. */
  convBias: Words;
  /** `[3, numHeads] f32`, read; see `packHeadParams`. */
  headParams: Words;
  /** Pages `[convWidth - 1, numChannels] f32`, with indices of their own. */
  tail: RequestPages;
  /** Pages `[numHeads, headDim, stateSize] f32`, with indices of their own. */
  state: RequestPages;
  /** `[numTokens, numChannels] f32`, overwritten: the rows behind the convolution. */
  xBC: TokenRows;
  /** `[numTokens, numHeads * headDim] f32`, written; gate, norm and output projection follow in the caller. */
  y: TokenRows;
}

/**
 * Adds the two dispatches of a Mamba-2 layer between its projections: convolution, then the recurrence, as a step where each
 * request has one token and as a scan otherwise. Which of the two it was makes no difference to a bit of the result.
 *
 * @throws {KernelError} `kernel-dispatch` when an operand does not fit the shape, or a buffer would be read and written at once;
 *   the step is to be dropped then
 */
export function recordMamba2Mixer(step: ComputeStep, shape: Mamba2Shape, operands: Mamba2MixerOperands): void {
  const { requests, projection, convWeight, convBias, headParams, tail, state, xBC, y } = operands;
  const layout = mamba2Layout(shape);
  requireRows('mamba2', 'projection', projection, requests.numTokens, layout.projection.rowWords);
  const column = (word: number): TokenRows => ({ ...projection, offsetWords: projection.offsetWords + word });
  const ssmOperands = { requests, xBC, dt: column(layout.projection.dt), headParams, state, y };
  requireSsmOperands('mamba2', shape, ssmOperands);
  const convShape = { numChannels: layout.numChannels, width: shape.convWidth };
  const input = column(layout.projection.xBC);
  recordCausalConv(step, convShape, { requests, input, weight: convWeight, bias: convBias, tail, output: xBC });
  const recordSsm = requests.oneTokenEach ? recordSsmStep : recordSsmScan;
  recordSsm(step, shape, ssmOperands);
}

/**
 * Compiles the kernels of a layer's shape ahead of use.
 * @throws {KernelError} `kernel-dispatch` for a shape that they do not serve, `kernel-unsupported`, `kernel-compile`
 */
export async function warmUpMamba2(context: ComputeContext, shape: Mamba2Shape): Promise<void> {
  const { numChannels } = mamba2Layout(shape);
  await Promise.all([
    context.warmUp(causalConvKernel, causalConvConstants({ numChannels, width: shape.convWidth })),
    context.warmUp(ssmScanKernel, ssmScanConstants(shape)),
    context.warmUp(ssmStepKernel, ssmStepConstants(shape)),
  ]);
}
