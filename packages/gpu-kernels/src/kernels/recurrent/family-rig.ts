import type { ComputeStep } from '../../kernel/compute-step.ts';
import { gatedDeltaReference } from '../gated-delta/gated-delta.reference.ts';
import {
  type GatedDeltaShape,
  gatedDeltaRowWords,
  recordGatedDelta,
  recordGatedDeltaReplay,
} from '../gated-delta/gated-delta.ts';
import { ssmReference } from '../mamba2/mamba2.reference.ts';
import { packHeadParams, recordSsmReplay, recordSsmScan, recordSsmStep } from '../mamba2/ssm.ts';
import type { RequestPages, TokenRows } from './operands.ts';
import type { PackedRequests } from './packed-requests.ts';
import type { ReferencePages } from './pages.reference.ts';
import type { RingPages } from './replay.ts';
import type { ReplayRequests } from './replay-ring.ts';
import type { StateShape } from './state-shape.ts';
import type { Words } from './tables.ts';
import type { RecurrentOptions } from './variant.ts';

interface Operands {
  tokens: TokenRows;
  /** `gateWords` of each token. */
  gates: TokenRows;
  headParams: Words;
  state: RequestPages;
  y: TokenRows;
}

/** A family of layers as the tests that hold for every family see it: kernels and reference over the same operands. */
export interface FamilyUnderTest {
  name: string;
  shape: StateShape;
  tokenWords: number;
  gateWords: number;
  headParams: Float32Array<ArrayBuffer>;
  reference(
    tokensPerRequest: ArrayLike<number>,
    tokens: Float64Array,
    gates: Float64Array,
    state: ReferencePages,
    y: Float64Array,
  ): void;
  scan(step: ComputeStep, operands: Operands & { requests: PackedRequests }, options?: RecurrentOptions): void;
  step(step: ComputeStep, operands: Operands & { requests: PackedRequests }, options?: RecurrentOptions): void;
  replay(step: ComputeStep, operands: Operands & { replay: ReplayRequests; ring: RingPages }, options?: RecurrentOptions): void;
}

export function mamba2UnderTest(shape: StateShape, random: () => number): FamilyUnderTest {
  const { numHeads, headDim, numGroups, stateSize } = shape;
  const heads = (middle: number) => Float32Array.from({ length: numHeads }, () => middle + random());
  const head = { dtBias: heads(-2), aLog: heads(1), dSkip: heads(1) };
  const tokenWords = numHeads * headDim + 2 * numGroups * stateSize;
  const named = <T extends Operands>({ tokens: xBC, gates: dt, ...rest }: T) => ({ ...rest, xBC, dt });
  return {
    name: 'mamba2',
    shape,
    tokenWords,
    gateWords: numHeads,
    headParams: packHeadParams(head),
    reference: (tokensPerRequest, tokens, gates, state, y) =>
      ssmReference(shape, {
        tokensPerRequest,
        xBC: { data: tokens, offsetWords: 0, strideWords: tokenWords },
        dt: { data: gates, offsetWords: 0, strideWords: numHeads },
        ...head,
        state,
        y: { data: y, offsetWords: 0, strideWords: numHeads * headDim },
      }),
    scan: (step, operands, options) => recordSsmScan(step, shape, named(operands), options),
    step: (step, operands, options) => recordSsmStep(step, shape, named(operands), options),
    replay: (step, operands, options) => recordSsmReplay(step, shape, named(operands), options),
  };
}

export function gatedDeltaUnderTest(shape: GatedDeltaShape, random: () => number): FamilyUnderTest {
  const { numHeads, headDim } = shape;
  const headParams = Float32Array.from({ length: 2 * numHeads }, random);
  const tokenWords = gatedDeltaRowWords(shape);
  const named = <T extends Operands>({ tokens: qkv, gates, ...rest }: T) => ({
    ...rest,
    qkv,
    decay: gates,
    write: { ...gates, offsetWords: gates.offsetWords + numHeads },
  });
  const record: FamilyUnderTest['scan'] = (step, operands, options) => recordGatedDelta(step, shape, named(operands), options);
  return {
    name: `gated-delta${shape.normalize === false ? ' as is' : ''}`,
    shape,
    tokenWords,
    gateWords: 2 * numHeads,
    headParams,
    reference: (tokensPerRequest, tokens, gates, state, y) =>
      gatedDeltaReference(shape, {
        tokensPerRequest,
        qkv: { data: tokens, offsetWords: 0, strideWords: tokenWords },
        decay: { data: gates, offsetWords: 0, strideWords: 2 * numHeads },
        write: { data: gates, offsetWords: numHeads, strideWords: 2 * numHeads },
        dtBias: headParams.subarray(0, numHeads),
        aLog: headParams.subarray(numHeads),
        state,
        y: { data: y, offsetWords: 0, strideWords: numHeads * headDim },
      }),
    scan: record,
    step: record,
    replay: (step, operands, options) => recordGatedDeltaReplay(step, shape, named(operands), options),
  };
}
