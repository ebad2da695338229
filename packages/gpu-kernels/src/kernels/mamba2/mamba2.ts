import { KernelError } from '../../errors/kernel-error.ts';
import type { ComputeContext } from '../../kernel/compute-context.ts';
import type { ComputeStep } from '../../kernel/compute-step.ts';
import type { StorageDtype } from '../../kernel/storage-dtype.ts';
import {
  causalConvConstants,
  causalConvKernel,
  recordCausalConv,
  type TailPages,
  type TailRing,
} from '../recurrent/causal-conv.ts';
import { type RequestPages, requireRows, type TokenRows } from '../recurrent/operands.ts';
import type { PackedRequests } from '../recurrent/packed-requests.ts';
import { shapeConstants } from '../recurrent/recurrence.ts';
import { type RingPages, replayConstants, replayKernelFor } from '../recurrent/replay.ts';
import type { ReplayRequests, ReplayRing } from '../recurrent/replay-ring.ts';
import { scanConstants, scanKernel } from '../recurrent/scan.ts';
import { stepKernel } from '../recurrent/step.ts';
import type { Words } from '../recurrent/tables.ts';
import { variantFor } from '../recurrent/variant.ts';
import { type Mamba2Shape, mamba2Layout } from './mamba2-shape.ts';
import { mamba2Family, recordSsm, recordSsmReplay } from './ssm.ts';

/** What a Mamba-2 layer works on between its projections, but for its requests and pages. */
interface MixerOperands {
  /** `[numTokens, rowWords] f32`, read: rows `[z | x | B | C | dt]` of the input projection; `offsetWords` is where z begins. */
  projection: TokenRows;
  /** `[numChannels, convWidth] f32`, read. */
  convWeight: Words;
  /** `[numChannels] f32`, read. */
  convBias: Words;
  /** `[3, numHeads] f32`, read; see `packHeadParams`. */
  headParams: Words;
  /** `[numTokens, numChannels] f32`, overwritten: the rows behind the convolution. */
  xBC: TokenRows;
  /** `[numTokens, numHeads * headDim] f32`, written; gate, norm and output projection follow in the caller. */
  y: TokenRows;
}

export interface Mamba2MixerOperands extends MixerOperands {
  requests: PackedRequests;
  /** Pages `[convWidth - 1, numChannels] f32`, or with a ring `[ring.rows, numChannels] f32`, with indices of their own. */
  tail: TailPages;
  /** Pages `[numHeads, headDim, stateSize]`, with indices of their own. */
  state: RequestPages;
}

export interface Mamba2ReplayOperands extends MixerOperands {
  replay: ReplayRequests;
  /** Pages `[tailRows, numChannels] f32`, with indices of their own. */
  tail: RequestPages;
  /** Rows of a tail page: `convWidth - 1` and at least `ring.maxTokens` more. */
  tailRows: number;
  /** Checkpoints `[numHeads, headDim, stateSize]`, with indices of their own. */
  state: RequestPages;
  /** Pages of `ssmRingWords`, with indices of their own. */
  ring: RingPages;
}

/**
 * Adds the two dispatches of a Mamba-2 layer between its projections: convolution, then the recurrence, as a step where each
 * request has one token and as a scan otherwise. Which of the two it was makes no difference to a bit of the result.
 *
 * @throws {KernelError} `kernel-dispatch` or `kernel-layout` when an operand does not fit the shape, or a buffer would be read and
 *   written at once; the step is to be dropped then
 */
export function recordMamba2Mixer(step: ComputeStep, shape: Mamba2Shape, operands: Mamba2MixerOperands): void {
  const dt = recordConvolution(step, shape, operands);
  recordSsm(step, shape, { ...operands, dt });
}

/**
 * The same for a decode step that writes no state: what its tokens do to it goes to the request's ring, and the tokens can be taken
 * back by `afterReplay`. The tail is a ring as well, with the positions of the same cursors.
 *
 * @throws {KernelError} as `recordMamba2Mixer`
 */
export function recordMamba2Replay(step: ComputeStep, shape: Mamba2Shape, operands: Mamba2ReplayOperands): void {
  const { replay, tailRows } = operands;
  const least = shape.convWidth - 1 + replay.ring.maxTokens;
  if (!(tailRows >= least)) {
    const message = `tailRows is ${tailRows}: drafts that are taken back need ${least} rows of the tail, those of a step and the ${shape.convWidth - 1} before it.`;
    throw new KernelError('kernel-layout', 'mamba2', message);
  }
  const ring: TailRing = { rows: tailRows, positions: replay.cursors };
  const tail = { ...operands.tail, ring };
  const dt = recordConvolution(step, shape, { ...operands, requests: replay.requests, tail });
  recordSsmReplay(step, shape, { ...operands, dt });
}

/** Adds the convolution of a layer, and returns where the step sizes lie. */
function recordConvolution(step: ComputeStep, shape: Mamba2Shape, operands: Omit<Mamba2MixerOperands, 'state'>): TokenRows {
  const { requests, projection, convWeight: weight, convBias: bias, tail, xBC: output } = operands;
  const layout = mamba2Layout(shape);
  requireRows('mamba2', 'projection', projection, requests.numTokens, layout.projection.rowWords);
  const column = (word: number): TokenRows => ({ ...projection, offsetWords: projection.offsetWords + word });
  const convShape = { numChannels: layout.numChannels, width: shape.convWidth };
  recordCausalConv(step, convShape, { requests, input: column(layout.projection.xBC), weight, bias, tail, output });
  return column(layout.projection.dt);
}

/** What of a layer is compiled besides the plain f32 kernels. */
export interface Mamba2Warmup {
  /** How states are stored, default f32. */
  dtype?: StorageDtype;
  /** With it, what `recordMamba2Replay` runs is compiled as well. */
  replay?: { ring: ReplayRing; tailRows: number };
}

/**
 * Compiles the kernels of a layer's shape ahead of use.
 * @throws {KernelError} `kernel-dispatch` for a shape that they do not serve, `kernel-unsupported`, `kernel-compile`
 */
export async function warmUpMamba2(
  context: ComputeContext,
  shape: Mamba2Shape,
  { dtype = 'f32', replay }: Mamba2Warmup = {},
): Promise<void> {
  const convShape = { numChannels: mamba2Layout(shape).numChannels, width: shape.convWidth };
  const variant = variantFor(context.device, shape, dtype);
  const work = [
    context.warmUp(causalConvKernel, causalConvConstants(convShape)),
    context.warmUp(scanKernel(mamba2Family, variant), scanConstants(shape, variant)),
    context.warmUp(stepKernel(mamba2Family, variant), shapeConstants(shape)),
  ];
  if (replay) {
    const { ring, tailRows } = replay;
    work.push(
      context.warmUp(causalConvKernel, causalConvConstants(convShape, tailRows)),
      context.warmUp(
        replayKernelFor(context.device, mamba2Family, shape, dtype, ring),
        replayConstants(mamba2Family, shape, ring),
      ),
    );
  }
  await Promise.all(work);
}
