import { KernelError } from '../../errors/kernel-error.ts';
import { bindingKinds, bindingText } from '../../kernel/binding-text.ts';
import type { ComputeStep } from '../../kernel/compute-step.ts';
import { defineKernel } from '../../kernel/kernel.ts';
import { paramText } from '../../kernel/param-text.ts';
import { packParams } from '../../kernel/params.ts';
import code from './causal-conv.wgsl';
import { numPagesOf, type RequestPages, requirePages, requireRows, requireWords, type TokenRows } from './operands.ts';
import type { PackedRequests } from './packed-requests.ts';
import snapshots from './pieces/snapshots.wgsl';
import { requirePositive } from './state-shape.ts';
import { joinTables, type Words } from './tables.ts';

export interface CausalConvShape {
  numChannels: number;
  /** Tokens that one output sees, the current one included: 2, 3 or 4. */
  width: number;
}

/** A tail page as a ring: the sequence's token p lies in row `p % rows`, and taking tokens back is a smaller position. */
export interface TailRing {
  /** Rows of a page: at least `width - 1`, and as many more as tokens may be taken back. */
  rows: number;
  /** `[numRequests] u32`: tokens that each sequence has kept before this call; the first row of `ReplayRequests.cursors`. */
  positions: Words;
}

/**
 * Pages `[width - 1, numChannels] f32`: the request's last input rows before this call, oldest first; after it, before the next.
 * With a ring, pages `[ring.rows, numChannels] f32`.
 */
export interface TailPages extends RequestPages {
  ring?: TailRing;
}

export interface CausalConvOperands {
  requests: PackedRequests;
  /** `[numTokens, numChannels] f32`, read: rows before the convolution. */
  input: TokenRows;
  /** `[numChannels, width] f32`, read: the newest token's weight last. */
  weight: Words;
  /** `[numChannels] f32`, read. */
  bias: Words;
  tail: TailPages;
  /** `[numTokens, numChannels] f32`, written. Another buffer than `input`. */
  output: TokenRows;
}

const CHANNELS_PER_WORKGROUP = 64;
const TOKENS_PER_TILE = 16;
const MIN_CONV_WIDTH = 2;
const MAX_CONV_WIDTH = 4;

const paramLayout = {
  numRequests: 'u32',
  numTokens: 'u32',
  startsOffset: 'u32',
  inputOffset: 'u32',
  inputStride: 'u32',
  weightOffset: 'u32',
  biasOffset: 'u32',
  tailIndexOffset: 'u32',
  tailTargetOffset: 'u32',
  positionsOffset: 'u32',
  snapshotsOffset: 'u32',
  numSnapshots: 'u32',
  tailBase: 'u32',
  tailStride: 'u32',
  numTailPages: 'u32',
  outputOffset: 'u32',
  outputStride: 'u32',
} as const;

const bindings = {
  params: ['uniform', 'Params'],
  tables: ['read-only-storage', 'array<u32>'],
  input: ['read-only-storage', 'array<f32>'],
  weight: ['read-only-storage', 'array<f32>'],
  bias: ['read-only-storage', 'array<f32>'],
  tailPages: ['storage', 'array<f32>'],
  output: ['storage', 'array<f32>'],
} as const;

/**
 * Depthwise causal convolution and SiLU; see `recordCausalConv` for the operands.
 *
 * Workgroup: 64 invocations, one for each channel, over a tile of 16 tokens of one request.
 * Dispatch: `ceil(numChannels / 64) * (floor(numTokens / 16) + numRequests)` workgroups, whatever the lengths of the requests.
 * Needs 6 storage buffers, no workgroup memory; default limits.
 * @see causalConvReference in causal-conv.reference.ts
 */
export const causalConvKernel = defineKernel({
  label: 'causal-conv',
  code: [paramText(paramLayout), bindingText(bindings), snapshots, code].join('\n'),
  bindings: bindingKinds(bindings),
  constants: { CHANNELS: 1, WIDTH: 4, PAGE_ROWS: 3, RING: 0 },
  workgroupSize: () => [CHANNELS_PER_WORKGROUP, 1, 1],
  workgroups: ({ numTokens, numRequests }: PackedRequests, { CHANNELS }) =>
    numTokens === 0 ? 0 : Math.ceil(CHANNELS / CHANNELS_PER_WORKGROUP) * (Math.floor(numTokens / TOKENS_PER_TILE) + numRequests),
});

/** Constants of `causalConvKernel` for a shape and, where tails are rings, their rows. */
export function causalConvConstants(shape: CausalConvShape, ringRows?: number) {
  const pageRows = ringRows ?? shape.width - 1;
  return { CHANNELS: shape.numChannels, WIDTH: shape.width, PAGE_ROWS: pageRows, RING: ringRows === undefined ? 0 : 1 };
}

export function requireConvWidth(label: string, width: number): void {
  if (Number.isInteger(width) && width >= MIN_CONV_WIDTH && width <= MAX_CONV_WIDTH) return;
  throw new KernelError('kernel-dispatch', label, `convolution width ${width} is not ${MIN_CONV_WIDTH} to ${MAX_CONV_WIDTH}.`);
}

/**
 * Adds one dispatch: `output = silu(bias + convolution of input)` for every token, each request continuing from its tail page;
 * its target page, by default the same, then holds the rows that the request's next token will look back to. A request
 * of fewer than `width - 1` tokens keeps part of the old ones, one of no tokens leaves all pages as they are.
 *
 * A ring is for tokens that may be taken back: it keeps the last `ring.rows` of the sequence, so that a later call can go on from any
 * of the positions for which it still has `width - 1` rows. It moves nothing that stays in its page: a decode step writes one row.
 *
 * A row of the output depends on nothing but the rows it sees: cutting or packing requests otherwise changes no bit.
 *
 * @throws {KernelError} `kernel-dispatch` or `kernel-layout` when an operand does not fit the shape; nothing was added then
 */
export function recordCausalConv(step: ComputeStep, shape: CausalConvShape, operands: CausalConvOperands): void {
  const { label } = causalConvKernel;
  const { requests, input, weight, bias, tail, output } = operands;
  requirePositive(label, 'numChannels', shape.numChannels);
  requireConvWidth(label, shape.width);
  const pageWords = tailWords(label, shape, tail);
  requireWords(label, 'requests.starts', requests.starts, requests.numRequests + 1);
  requireRows(label, 'input', input, requests.numTokens, shape.numChannels);
  requireWords(label, 'weight', weight, shape.numChannels * shape.width);
  requireWords(label, 'bias', bias, shape.numChannels);
  requirePages(label, 'tail', tail, requests.numRequests, pageWords);
  if (tail.ring) requireWords(label, 'tail.ring.positions', tail.ring.positions, requests.numRequests);
  requireRows(label, 'output', output, requests.numTokens, shape.numChannels);
  const { tables, offsets } = joinTables(label, {
    starts: requests.starts,
    tailIndex: tail.pageIndex,
    tailTarget: tail.targetIndex ?? tail.pageIndex,
    positions: tail.ring?.positions ?? requests.starts,
    snapshots: tail.snapshots?.words ?? requests.starts,
  });
  const params = packParams(paramLayout, {
    numRequests: requests.numRequests,
    numTokens: requests.numTokens,
    startsOffset: offsets.starts,
    inputOffset: input.offsetWords,
    inputStride: input.strideWords,
    weightOffset: weight.offsetWords ?? 0,
    biasOffset: bias.offsetWords ?? 0,
    tailIndexOffset: offsets.tailIndex,
    tailTargetOffset: offsets.tailTarget,
    positionsOffset: offsets.positions,
    snapshotsOffset: offsets.snapshots,
    numSnapshots: tail.snapshots?.numSnapshots ?? 0,
    tailBase: tail.baseWords,
    tailStride: tail.strideWords,
    numTailPages: numPagesOf(tail, pageWords),
    outputOffset: output.offsetWords,
    outputStride: output.strideWords,
  });
  step.dispatch(causalConvKernel, {
    shape: requests,
    constants: causalConvConstants(shape, tail.ring?.rows),
    bindings: {
      params: step.upload(params),
      tables,
      input: input.buffer,
      weight: weight.buffer,
      bias: bias.buffer,
      tailPages: tail.pool,
      output: output.buffer,
    },
  });
}

function tailWords(label: string, { numChannels, width }: CausalConvShape, { dtype, ring }: TailPages): number {
  if (dtype === 'f16') {
    const message = 'tail pages are f16, but neighbouring channels are written by different invocations. Store f32.';
    throw new KernelError('kernel-layout', label, message);
  }
  const rows = ring?.rows ?? width - 1;
  if (!Number.isInteger(rows) || rows < width - 1) {
    const message = `a tail ring of ${rows} rows is shorter than the ${width - 1} that an output looks back to.`;
    throw new KernelError('kernel-layout', label, message);
  }
  return rows * numChannels;
}
