import { KernelError } from '../../errors/kernel-error.ts';
import { requireSsmShape, type SsmShape } from './mamba2-shape.ts';
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

/** What a scan and a step of the recurrence work on. */
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
  /** Pages `[numHeads, headDim, stateSize] f32`: state before the request's first token of this call, and after its last. */
  state: RequestPages;
  /** `[numTokens, numHeads * headDim] f32`, written. Another buffer than `xBC` and `dt`. */
  y: TokenRows;
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

export function requireSsmOperands(label: string, shape: SsmShape, operands: SsmOperands): void {
  const { requests, xBC, dt, headParams, state, y } = operands;
  requireSsmShape(label, shape);
  const innerSize = shape.numHeads * shape.headDim;
  requireWords(label, 'requests.starts', requests.starts, requests.numRequests + 1);
  requireRows(label, 'xBC', xBC, requests.numTokens, innerSize + 2 * shape.numGroups * shape.stateSize);
  requireRows(label, 'dt', dt, requests.numTokens, shape.numHeads);
  requireWords(label, 'headParams', headParams, 3 * shape.numHeads);
  requirePages(label, 'state', state, requests.numRequests, innerSize * shape.stateSize);
  requireRows(label, 'y', y, requests.numTokens, innerSize);
}

/** Fields that the parameters of both kernels have in common, in the order of their WGSL structs. */
export const ssmParamLayout = {
  xBCOffset: 'u32',
  xBCStride: 'u32',
  dtOffset: 'u32',
  dtStride: 'u32',
  headParamsOffset: 'u32',
  stateIndexOffset: 'u32',
  stateBase: 'u32',
  stateStride: 'u32',
  numStatePages: 'u32',
  yOffset: 'u32',
  yStride: 'u32',
} as const;

export function ssmParams(shape: SsmShape, operands: SsmOperands): Record<keyof typeof ssmParamLayout, number> {
  const { xBC, dt, headParams, state, y } = operands;
  return {
    xBCOffset: xBC.offsetWords,
    xBCStride: xBC.strideWords,
    dtOffset: dt.offsetWords,
    dtStride: dt.strideWords,
    headParamsOffset: headParams.offsetWords ?? 0,
    stateIndexOffset: state.pageIndex.offsetWords ?? 0,
    stateBase: state.baseWords,
    stateStride: state.strideWords,
    numStatePages: numPagesOf(state, shape.numHeads * shape.headDim * shape.stateSize),
    yOffset: y.offsetWords,
    yStride: y.strideWords,
  };
}

/** Rows and columns of the part of a head's state that one invocation keeps in registers, as in ssm-recurrence.wgsl. */
const TILE_ROWS = 4;
const TILE_COLUMNS = 16;

/** Groups of 4 rows that the state of a head is divided into, the last one perhaps not full. */
export function rowGroupsOf(headDim: number): number {
  return Math.ceil(headDim / TILE_ROWS);
}

/** Slices of 16 columns that the state of a head is divided into, the last one perhaps not full. */
export function slicesOf(stateSize: number): number {
  return Math.ceil(stateSize / TILE_COLUMNS);
}
