import { type ComputeStep, defineKernel, packParams, requireBindingWords, type StepData } from '@bufferwise/gpu-kernels';
import type { RotaryDescription } from '../../description/rotary.ts';
import { placeRows, type Rows, refusal, requireCount } from './operands.ts';
import code from './rope.wgsl';

export interface RopeOperands {
  numTokens: number;
  /** Heads to turn, side by side in a row: queries and keys together where they lie behind one another. */
  numHeads: number;
  /** Values of a head, at least those that turn. */
  headDim: number;
  /** Which values of a head are pairs, and how many of them turn. */
  rotary: Pick<RotaryDescription, 'pairs' | 'dimensions'>;
  /** Of `uploadRotations`, made once and good for all layers of the step. */
  rotations: StepData;
  /** `[numTokens, numHeads, headDim] f32`, turned in place. */
  heads: Rows;
}

const LANES = 64;

const paramLayout = {
  numTokens: 'u32',
  numHeads: 'u32',
  headDim: 'u32',
  numPairs: 'u32',
  pairStep: 'u32',
  pairGap: 'u32',
  headsOffset: 'u32',
  headsStride: 'u32',
} as const;

/**
 * Rotary positions in place; see `recordRope` for the operands.
 *
 * Workgroup: 64 invocations, one pair of values each. Dispatch: `ceil(numTokens * numHeads * dimensions / 2 / 64)`, folded.
 * Needs 2 storage buffers, no workgroup memory; default limits.
 * @see rope.reference.ts
 */
export const ropeKernel = defineKernel({
  label: 'rope',
  code,
  bindings: { params: 'uniform', rotations: 'read-only-storage', heads: 'storage' },
  constants: {},
  workgroupSize: () => [LANES, 1, 1],
  workgroups: ({ numPairs }: { numPairs: number }) => Math.ceil(numPairs / LANES),
});

/**
 * Adds the rotations of a step's tokens to its upload: cosine and sine of each pair's angle, see `RotaryDescription`.
 *
 * They come from the CPU because WGSL promises only three digits of a cosine, and none beyond one turn.
 *
 * @param positions of each token in its own sequence, 0 for the first
 * @param factors `[dimensions / 2]`, where the description has them
 * @returns `[numTokens, dimensions / 2, 2] f32`
 */
export function uploadRotations(
  step: ComputeStep,
  positions: ArrayLike<number>,
  { base, dimensions, positionScale }: RotaryDescription,
  factors?: ArrayLike<number>,
): StepData {
  const half = dimensions / 2;
  const frequencies = Float64Array.from({ length: half }, (_, i) => base ** (-i / half) / positionScale / (factors?.[i] ?? 1));
  const rotations = new Float32Array(positions.length * dimensions);
  for (let t = 0; t < positions.length; t++) {
    for (let i = 0; i < half; i++) {
      const angle = positions[t] * frequencies[i];
      rotations[(t * half + i) * 2] = Math.cos(angle);
      rotations[(t * half + i) * 2 + 1] = Math.sin(angle);
    }
  }
  return step.upload(rotations);
}

/**
 * Adds one dispatch: turns pair i of every head by its token's rotation number i.
 *
 * @throws {KernelError} `kernel-dispatch` when an operand does not fit the shape; nothing was added then
 */
export function recordRope(step: ComputeStep, operands: RopeOperands): void {
  const { numTokens, numHeads, headDim, rotary, rotations, heads } = operands;
  const { label } = ropeKernel;
  const { pairs, dimensions } = rotary;
  requireCount(label, 'numTokens', numTokens);
  requireCount(label, 'numHeads', numHeads);
  requireCount(label, 'headDim', headDim);
  requireCount(label, 'dimensions', dimensions);
  if (dimensions % 2 !== 0) throw refusal(label, `dimensions is ${dimensions}: pairs need an even number.`);
  if (dimensions > headDim) throw refusal(label, `dimensions is ${dimensions}, and a head has ${headDim} values.`);
  requireBindingWords(label, 'rotations', rotations, numTokens * dimensions);
  const { offset, stride } = placeRows(label, 'heads', heads, { numRows: numTokens, rowWords: numHeads * headDim });
  const numPairs = dimensions / 2;
  const params = packParams(paramLayout, {
    numTokens,
    numHeads,
    headDim,
    numPairs,
    pairStep: pairs === 'interleaved' ? 2 : 1,
    pairGap: pairs === 'interleaved' ? 1 : numPairs,
    headsOffset: offset,
    headsStride: stride,
  });
  step.dispatch(ropeKernel, {
    shape: { numPairs: numTokens * numHeads * numPairs },
    bindings: { params: step.upload(params), rotations, heads: heads.buffer },
  });
}
