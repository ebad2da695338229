import { type Binding, type ComputeStep, defineKernel, packParams, requireBindingWords } from '@bufferwise/gpu-kernels';
import code from './gated-norm.wgsl';
import { placeRows, type Rows, refusal, requireCount } from './operands.ts';

export interface GatedNormOperands {
  numTokens: number;
  /** Values of a row, a positive multiple of 4. */
  rowSize: number;
  /** `[numTokens, rowSize] f32`, normed in place; offset and stride multiples of 4. */
  values: Rows;
  /** `[numTokens, rowSize] f32`, read, in another buffer; offset and stride multiples of 4. */
  gate: Rows;
  /** `[rowSize] f32`. */
  weight: Binding;
  eps: number;
}

const paramLayout = {
  numTokens: 'u32',
  rowSize: 'u32',
  valuesOffset: 'u32',
  valuesStride: 'u32',
  gateOffset: 'u32',
  gateStride: 'u32',
  eps: 'f32',
} as const;

/**
 * RMS norm of gated rows; see `recordGatedNorm` for the operands.
 *
 * Workgroup: 64 invocations over one token. Dispatch: `numTokens`, folded.
 * Needs 3 storage buffers, 288 bytes of workgroup memory; default limits.
 * @see gated-norm.reference.ts
 */
export const gatedNormKernel = defineKernel({
  label: 'gated-norm',
  code,
  bindings: { params: 'uniform', gate: 'read-only-storage', weight: 'read-only-storage', values: 'storage' },
  constants: {},
  workgroupSize: () => [64, 1, 1],
  workgroups: ({ numTokens }: { numTokens: number }) => numTokens,
});

/**
 * Adds one dispatch: with `v = values * silu(gate)`, `values = v / sqrt(mean(v²) + eps) * weight` for every token.
 *
 * @throws {KernelError} `kernel-dispatch` when an operand does not fit the shape; nothing was added then
 */
export function recordGatedNorm(step: ComputeStep, operands: GatedNormOperands): void {
  const { numTokens, rowSize, values, gate, weight, eps } = operands;
  const { label } = gatedNormKernel;
  requireCount(label, 'numTokens', numTokens);
  if (!Number.isInteger(rowSize) || rowSize <= 0 || rowSize % 4 !== 0) {
    throw refusal(label, `rowSize is ${rowSize}, not a positive multiple of 4.`);
  }
  const valuesPlace = placeRows(label, 'values', values, { numRows: numTokens, rowWords: rowSize, multiple: 4 });
  const gatePlace = placeRows(label, 'gate', gate, { numRows: numTokens, rowWords: rowSize, multiple: 4 });
  requireBindingWords(label, 'weight', weight, rowSize);
  const params = packParams(paramLayout, {
    numTokens,
    rowSize,
    valuesOffset: valuesPlace.offset,
    valuesStride: valuesPlace.stride,
    gateOffset: gatePlace.offset,
    gateStride: gatePlace.stride,
    eps,
  });
  step.dispatch(gatedNormKernel, {
    shape: { numTokens },
    bindings: { params: step.upload(params), gate: gate.buffer, weight, values: values.buffer },
  });
}
