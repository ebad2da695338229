import { KernelError } from '../../errors/kernel-error.ts';
import type { ComputeStep } from '../../kernel/compute-step.ts';
import type { RequestPages, TokenRows } from '../recurrent/operands.ts';
import type { PackedRequests } from '../recurrent/packed-requests.ts';
import type { RecurrentCall, RecurrentFamily } from '../recurrent/recurrence.ts';
import { type RingPages, recordReplay } from '../recurrent/replay.ts';
import { type ReplayRequests, type ReplayRing, ringWords } from '../recurrent/replay-ring.ts';
import { recordScan } from '../recurrent/scan.ts';
import type { StateShape } from '../recurrent/state-shape.ts';
import { canStep, recordStep } from '../recurrent/step.ts';
import type { Words } from '../recurrent/tables.ts';
import type { RecurrentOptions } from '../recurrent/variant.ts';
import tokens from './mamba2-tokens.wgsl';

/** Mamba-2: `dt = softplus(dt + dtBias); h = exp(-exp(aLog) dt) h + dt x (outer) B; y = h C + dSkip x`. */
export const mamba2Family: RecurrentFamily = {
  label: 'mamba2',
  tokens,
  constants: { DELTA: false, NORMALIZE: false },
  operandNames: { tokens: 'xBC', gates: 'dt' },
  params: {},
  storage: {},
};

/** What scan, step and replay of a Mamba-2 layer work on. */
export interface SsmOperands {
  requests: PackedRequests;
  /**
   * `[numTokens, numChannels] f32`, read: rows `[x: numHeads * headDim | B: numGroups * stateSize | C: numGroups * stateSize]`
   * behind the convolution.
   */
  xBC: TokenRows;
  /** `[numTokens, numHeads] f32`, read: step sizes before bias and softplus, usually where the input projection left them. */
  dt: TokenRows;
  /** `[3, numHeads] f32`, read: `[dtBias | aLog | dSkip]`; see `packHeadParams`. */
  headParams: Words;
  /** Pages `[numHeads, headDim, stateSize]`: state before the request's first token of this call, and after its last. */
  state: RequestPages;
  /** `[numTokens, numHeads * headDim] f32`, written. Another buffer than `xBC` and `dt`. */
  y: TokenRows;
}

/** The same for a step that replays: `state` is the checkpoint. */
export interface SsmReplayOperands extends Omit<SsmOperands, 'requests'> {
  replay: ReplayRequests;
  /** Pages of `ssmRingWords`. */
  ring: RingPages;
}

/** Values of each head, `[numHeads]` each. The decay of head h over a step of size dt is `exp(-exp(aLog[h]) * dt)`. */
export interface HeadParams {
  dtBias: ArrayLike<number>;
  aLog: ArrayLike<number>;
  dSkip: ArrayLike<number>;
}

/**
 * The three values of every head side by side, as the kernels read them.
 * A file that stores the rate `a = -exp(aLog)` itself wants `aLog = log(-a)`.
 *
 * @returns `[3, numHeads] f32`
 * @throws {KernelError} `kernel-dispatch` when the three differ in length
 */
export function packHeadParams({ dtBias, aLog, dSkip }: HeadParams): Float32Array<ArrayBuffer> {
  const numHeads = dtBias.length;
  if (aLog.length !== numHeads || dSkip.length !== numHeads) {
    throw new KernelError(
      'kernel-dispatch',
      'mamba2',
      `dtBias, aLog and dSkip have ${numHeads}, ${aLog.length} and ${dSkip.length} values. Each needs one for every head.`,
    );
  }
  const packed = new Float32Array(3 * numHeads);
  packed.set(dtBias, 0);
  packed.set(aLog, numHeads);
  packed.set(dSkip, 2 * numHeads);
  return packed;
}

/** Adds the recurrence over all tokens of packed requests; see `recordScan` for what it promises and throws. */
export function recordSsmScan(step: ComputeStep, shape: StateShape, operands: SsmOperands, options?: RecurrentOptions): void {
  recordScan(step, ssmCall(shape, operands), options);
}

/** Adds the recurrence for requests of one token each; see `recordStep` for what it promises and throws. */
export function recordSsmStep(step: ComputeStep, shape: StateShape, operands: SsmOperands, options?: RecurrentOptions): void {
  recordStep(step, ssmCall(shape, operands), options);
}

/** Adds a step where it does what a scan would, else a scan. Which of the two makes no difference to a bit of the result. */
export function recordSsm(step: ComputeStep, shape: StateShape, operands: SsmOperands, options?: RecurrentOptions): void {
  const call = ssmCall(shape, operands);
  (canStep(call) ? recordStep : recordScan)(step, call, options);
}

/** Adds a few tokens of each request from checkpoint and ring; see `recordReplay` for what it promises and throws. */
export function recordSsmReplay(
  step: ComputeStep,
  shape: StateShape,
  operands: SsmReplayOperands,
  options?: RecurrentOptions,
): void {
  const { replay, ring } = operands;
  const call = ssmCall(shape, { ...operands, requests: replay.requests });
  recordReplay(step, { ...call, replay, ringPages: ring }, options);
}

/**
 * Words of one page of a layer's replay ring, `[ring.rows, rowWords]` of rows
 * `[dt x: numHeads * headDim | B: numGroups * stateSize | -exp(aLog) dt: numHeads]`.
 * @throws {KernelError} `kernel-layout` when the ring is too short, or rows of f16 end in half a word
 */
export function ssmRingWords(shape: StateShape, ring: ReplayRing): number {
  return ringWords(mamba2Family.label, shape, ring);
}

function ssmCall(shape: StateShape, { requests, xBC, dt, headParams, state, y }: SsmOperands): RecurrentCall {
  return {
    family: mamba2Family,
    shape,
    requests,
    tokens: xBC,
    tokenWords: shape.numHeads * shape.headDim + 2 * shape.numGroups * shape.stateSize,
    gates: dt,
    headParams,
    headParamRows: 3,
    state,
    y,
    params: {},
    bindings: {},
  };
}
