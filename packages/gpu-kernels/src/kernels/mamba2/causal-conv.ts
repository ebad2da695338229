import type { ComputeStep } from '../../kernel/compute-step.ts';
import { defineKernel } from '../../kernel/kernel.ts';
import { packParams } from '../../kernel/params.ts';
import code from './causal-conv.wgsl';
import { requireConvWidth, requirePositive } from './mamba2-shape.ts';
import {
  numPagesOf,
  type RequestPages,
  requirePages,
  requireRows,
  requireWords,
  type TokenRows,
  type Words,
} from './operands.ts';
import type { PackedRequests } from './packed-requests.ts';

export interface CausalConvShape {
  numChannels: number;
  /** Tokens that one output sees, the current one included: 2, 3 or 4. */
  width: number;
}

export interface CausalConvOperands {
  requests: PackedRequests;
  /** `[numTokens, numChannels] f32`, read: rows before the convolution. */
  input: TokenRows;
  /** `[numChannels, width] f32`, read: the newest token's weight last. */
  weight: Words;
  /** `[numChannels] f32`, read. */
  bias: Words;
  /** Pages `[width - 1, numChannels] f32`: the request's last input rows before this call, oldest first; after it, before the next. */
  tail: RequestPages;
  /** `[numTokens, numChannels] f32`, written. Another buffer than `input`. */
  output: TokenRows;
}

const CHANNELS_PER_WORKGROUP = 64;
const TOKENS_PER_TILE = 16;

const paramLayout = {
  numRequests: 'u32',
  numTokens: 'u32',
  requestStartsOffset: 'u32',
  inputOffset: 'u32',
  inputStride: 'u32',
  weightOffset: 'u32',
  biasOffset: 'u32',
  tailIndexOffset: 'u32',
  tailBase: 'u32',
  tailStride: 'u32',
  numTailPages: 'u32',
  outputOffset: 'u32',
  outputStride: 'u32',
} as const;

/**
 * Depthwise causal convolution and SiLU; see `recordCausalConv` for the operands.
 *
 * Workgroup: 64 invocations, one for each channel, over a tile of 16 tokens of one request.
 * Dispatch: `ceil(numChannels / 64) * (floor(numTokens / 16) + numRequests)` workgroups, whatever the lengths of the requests.
 * Needs 7 storage buffers, no workgroup memory; default limits.
 * @see causalConvReference in mamba2.reference.ts
 */
export const causalConvKernel = defineKernel({
  label: 'causal-conv',
  code,
  bindings: {
    params: 'uniform',
    requestStarts: 'read-only-storage',
    input: 'read-only-storage',
    weight: 'read-only-storage',
    bias: 'read-only-storage',
    tailIndex: 'read-only-storage',
    tailPages: 'storage',
    output: 'storage',
  },
  constants: { CHANNELS: 1, WIDTH: 4 },
  workgroupSize: () => [CHANNELS_PER_WORKGROUP, 1, 1],
  workgroups: ({ numTokens, numRequests }: { numTokens: number; numRequests: number }, { CHANNELS }) =>
    numTokens === 0 ? 0 : Math.ceil(CHANNELS / CHANNELS_PER_WORKGROUP) * (Math.floor(numTokens / TOKENS_PER_TILE) + numRequests),
});

/** Constants of `causalConvKernel` for a shape. */
export function causalConvConstants(shape: CausalConvShape): { CHANNELS: number; WIDTH: number } {
  return { CHANNELS: shape.numChannels, WIDTH: shape.width };
}

/**
 * Adds one dispatch: `output = silu(bias + convolution of input)` for every token, each request continuing from its tail page,
 * which then holds the rows that the request's next token will look back to. Old and new tail are the same page; a request
 * of fewer than `width - 1` tokens keeps part of the old one.
 *
 * A row of the output depends on nothing but the rows it sees: cutting or packing requests otherwise changes no bit.
 *
 * @throws {KernelError} `kernel-dispatch` when an operand does not fit the shape; nothing was added then
 */
export function recordCausalConv(step: ComputeStep, shape: CausalConvShape, operands: CausalConvOperands): void {
  const { label } = causalConvKernel;
  const { requests, input, weight, bias, tail, output } = operands;
  requirePositive(label, 'numChannels', shape.numChannels);
  requireConvWidth(label, shape.width);
  requireWords(label, 'requests.starts', requests.starts, requests.numRequests + 1);
  requireRows(label, 'input', input, requests.numTokens, shape.numChannels);
  requireWords(label, 'weight', weight, shape.numChannels * shape.width);
  requireWords(label, 'bias', bias, shape.numChannels);
  requirePages(label, 'tail', tail, requests.numRequests, (shape.width - 1) * shape.numChannels);
  requireRows(label, 'output', output, requests.numTokens, shape.numChannels);
  const params = packParams(paramLayout, {
    numRequests: requests.numRequests,
    numTokens: requests.numTokens,
    requestStartsOffset: requests.starts.offsetWords ?? 0,
    inputOffset: input.offsetWords,
    inputStride: input.strideWords,
    weightOffset: weight.offsetWords ?? 0,
    biasOffset: bias.offsetWords ?? 0,
    tailIndexOffset: tail.pageIndex.offsetWords ?? 0,
    tailBase: tail.baseWords,
    tailStride: tail.strideWords,
    numTailPages: numPagesOf(tail, (shape.width - 1) * shape.numChannels),
    outputOffset: output.offsetWords,
    outputStride: output.strideWords,
  });
  step.dispatch(causalConvKernel, {
    shape: requests,
    constants: causalConvConstants(shape),
    bindings: {
      params: step.upload(params),
      requestStarts: requests.starts.buffer,
      input: input.buffer,
      weight: weight.buffer,
      bias: bias.buffer,
      tailIndex: tail.pageIndex.buffer,
      tailPages: tail.pool,
      output: output.buffer,
    },
  });
}
