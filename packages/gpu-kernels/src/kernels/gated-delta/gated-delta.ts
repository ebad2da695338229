import type { ComputeStep } from '../../kernel/compute-step.ts';
import { type RequestPages, requireRows, type TokenRows } from '../recurrent/operands.ts';
import type { PackedRequests } from '../recurrent/packed-requests.ts';
import type { RecurrentCall, RecurrentFamily } from '../recurrent/recurrence.ts';
import { type RingPages, recordReplay } from '../recurrent/replay.ts';
import { type ReplayRequests, type ReplayRing, ringWords } from '../recurrent/replay-ring.ts';
import { recordScan } from '../recurrent/scan.ts';
import { requireStateShape, type StateShape } from '../recurrent/state-shape.ts';
import { canStep, recordStep } from '../recurrent/step.ts';
import type { Words } from '../recurrent/tables.ts';
import type { RecurrentOptions } from '../recurrent/variant.ts';
import tokens from './gated-delta-tokens.wgsl';

/**
 * Sizes of a gated delta net, as Qwen3-Next has it. In the words of the state: `headDim` values of a token, `stateSize` of a key or a
 * query, `numGroups` key heads, each of which serves `numHeads / numGroups` value heads that follow one another.
 */
export interface GatedDeltaShape extends StateShape {
  /** Whether queries and keys are brought to length 1 (`x / sqrt(|x|^2 + 1e-6)`), default true. */
  normalize?: boolean;
  /** Factor of the outputs, default `1 / sqrt(stateSize)`. */
  queryScale?: number;
}

/** What scan, step and replay of a gated delta net work on. */
export interface GatedDeltaOperands {
  requests: PackedRequests;
  /**
   * `[numTokens, gatedDeltaRowWords] f32`, read: rows `[q: numGroups * stateSize | k: numGroups * stateSize | v: numHeads * headDim]`
   * behind the convolution.
   */
  qkv: TokenRows;
  /** `[numTokens, numHeads] f32`, read: decay gates a; the decay is `exp(-exp(aLog) * softplus(a + dtBias))`. */
  decay: TokenRows;
  /** `[numTokens, numHeads] f32`, read: write gates b; `sigmoid(b)` of what the state lacks of v is written. */
  write: TokenRows;
  /** `[2, numHeads] f32`, read: `[dtBias | aLog]`. */
  headParams: Words;
  /** Pages `[numHeads, headDim, stateSize]`: state before the request's first token of this call, and after its last. */
  state: RequestPages;
  /** `[numTokens, numHeads * headDim] f32`, written. Another buffer than `qkv` and the gates. */
  y: TokenRows;
}

/** The same for a step that replays: `state` is the checkpoint. */
export interface GatedDeltaReplayOperands extends Omit<GatedDeltaOperands, 'requests'> {
  replay: ReplayRequests;
  /** Pages of `gatedDeltaRingWords`. */
  ring: RingPages;
}

function makeFamily(NORMALIZE: boolean): RecurrentFamily {
  return {
    label: NORMALIZE ? 'gated-delta' : 'gated-delta as is',
    tokens,
    constants: { DELTA: true, NORMALIZE },
    operandNames: { tokens: 'qkv', gates: 'decay' },
    params: { writeGatesOffset: 'u32', writeGatesStride: 'u32', queryScale: 'f32' },
    storage: { writeGates: ['read-only-storage', 'array<f32>'] },
  };
}

const normalizing = makeFamily(true);
const asIs = makeFamily(false);

/** Gated delta nets whose queries and keys are brought to length 1, or taken as they are. */
export function gatedDeltaFamily(normalize: boolean): RecurrentFamily {
  return normalize ? normalizing : asIs;
}

/** Words of one row `[q | k | v]`: the channels of the convolution before it. */
export function gatedDeltaRowWords(shape: GatedDeltaShape): number {
  requireStateShape('gated-delta', shape);
  return 2 * shape.numGroups * shape.stateSize + shape.numHeads * shape.headDim;
}

/**
 * Words of one page of a layer's replay ring, `[ring.rows, rowWords]` of rows
 * `[u: numHeads * headDim | k: numGroups * stateSize | logarithm of the decay: numHeads]`.
 * @throws {KernelError} `kernel-layout` when the ring is too short, or rows of f16 end in half a word
 */
export function gatedDeltaRingWords(shape: GatedDeltaShape, ring: ReplayRing): number {
  return ringWords('gated-delta', shape, ring);
}

/**
 * Adds one dispatch: for every token of every request, in order,
 * `S = decay S; u = sigmoid(b) (v - S k); S = S + u (outer) k; y = queryScale S q`,
 * as a step where each request has one token and as a scan otherwise. Which of the two it was makes no difference to a bit of the
 * result, nor does anything else that `recordScan` names.
 *
 * @throws {KernelError} `kernel-dispatch` or `kernel-layout` when an operand does not fit the shape; nothing was added then
 */
export function recordGatedDelta(
  step: ComputeStep,
  shape: GatedDeltaShape,
  operands: GatedDeltaOperands,
  options?: RecurrentOptions,
): void {
  const call = gatedDeltaCall(shape, operands);
  (canStep(call) ? recordStep : recordScan)(step, call, options);
}

/** Adds a few tokens of each request from checkpoint and ring; see `recordReplay` for what it promises and throws. */
export function recordGatedDeltaReplay(
  step: ComputeStep,
  shape: GatedDeltaShape,
  operands: GatedDeltaReplayOperands,
  options?: RecurrentOptions,
): void {
  const { replay, ring } = operands;
  const call = gatedDeltaCall(shape, { ...operands, requests: replay.requests });
  recordReplay(step, { ...call, replay, ringPages: ring }, options);
}

function gatedDeltaCall(shape: GatedDeltaShape, operands: GatedDeltaOperands): RecurrentCall {
  const { requests, qkv, decay, write, headParams, state, y } = operands;
  const { normalize = true, queryScale = 1 / Math.sqrt(shape.stateSize) } = shape;
  requireRows('gated-delta', 'write', write, requests.numTokens, shape.numHeads);
  return {
    family: gatedDeltaFamily(normalize),
    shape,
    requests,
    tokens: qkv,
    tokenWords: gatedDeltaRowWords(shape),
    gates: decay,
    headParams,
    headParamRows: 2,
    state,
    y,
    params: { writeGatesOffset: write.offsetWords, writeGatesStride: write.strideWords, queryScale },
    bindings: { writeGates: write.buffer },
  };
}
