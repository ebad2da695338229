import { type ComputeStep, defineKernel, packParams, requireBindingWords, type StepData } from '@bufferwise/gpu-kernels';
import type { HybridModelConfig } from '../model-config.ts';
import { placeRows, type Rows, refusal, requireCount } from './operands.ts';
import code from './rope.wgsl';

export interface RopeOperands {
  numTokens: number;
  /** Heads to turn, side by side in a row: queries and keys together where they lie behind one another. */
  numHeads: number;
  /** Values of a head, even. */
  headDim: number;
  /** Of `uploadRotations`, made once and good for all layers of the step. */
  rotations: StepData;
  /** `[numTokens, numHeads, headDim] f32`, turned in place. */
  heads: Rows;
}

const LANES = 64;

const paramLayout = { numTokens: 'u32', numHeads: 'u32', halfDim: 'u32', headsOffset: 'u32', headsStride: 'u32' } as const;

/**
 * Rotary positions in place; see `recordRope` for the operands.
 *
 * Workgroup: 64 invocations, one pair of values each. Dispatch: `ceil(numTokens * numHeads * headDim / 2 / 64)`, folded.
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
 * Adds the rotations of a step's tokens to its upload: cosine and sine of `position * ropeTheta ** (-2i / headDim)`.
 *
 * They come from the CPU because WGSL promises only three digits of a cosine, and none beyond one turn.
 *
 * @param positions of each token in its own sequence, 0 for the first
 * @returns `[numTokens, headDim / 2, 2] f32`
 */
export function uploadRotations(
  step: ComputeStep,
  positions: ArrayLike<number>,
  { headDim, ropeTheta }: Pick<HybridModelConfig, 'headDim' | 'ropeTheta'>,
): StepData {
  const half = headDim / 2;
  const frequencies = Float64Array.from({ length: half }, (_, i) => ropeTheta ** (-i / half));
  const rotations = new Float32Array(positions.length * headDim);
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
 * Adds one dispatch: turns the pair (i, i + headDim / 2) of every head by its token's rotation number i.
 *
 * @throws {KernelError} `kernel-dispatch` when an operand does not fit the shape; nothing was added then
 */
export function recordRope(step: ComputeStep, operands: RopeOperands): void {
  const { numTokens, numHeads, headDim, rotations, heads } = operands;
  const { label } = ropeKernel;
  requireCount(label, 'numTokens', numTokens);
  requireCount(label, 'numHeads', numHeads);
  requireCount(label, 'headDim', headDim);
  if (headDim % 2 !== 0) throw refusal(label, `headDim is ${headDim}: pairs need an even number.`);
  requireBindingWords(label, 'rotations', rotations, numTokens * headDim);
  const { offset, stride } = placeRows(label, 'heads', heads, { numRows: numTokens, rowWords: numHeads * headDim });
  const halfDim = headDim / 2;
  const params = packParams(paramLayout, { numTokens, numHeads, halfDim, headsOffset: offset, headsStride: stride });
  step.dispatch(ropeKernel, {
    shape: { numPairs: numTokens * numHeads * halfDim },
    bindings: { params: step.upload(params), rotations, heads: heads.buffer },
  });
}
