import { type Binding, type ComputeStep, defineKernel, packParams, requireBindingWords } from '@bufferwise/gpu-kernels';
import code from './gather-rows.wgsl';
import { refusal, requireCount } from './operands.ts';

export interface GatherRowsOperands {
  /** Rows to copy, >= 0. */
  numRows: number;
  /** Values of a row, a positive multiple of 4. */
  rowSize: number;
  /** `[numRows] u32`: which rows of `source`; the caller makes sure that it has them. */
  rows: Binding;
  /** Rows `[rowSize] f32`, side by side. */
  source: Binding;
  /** `[numRows, rowSize] f32`, written. Another buffer than `source`. */
  output: Binding;
}

/**
 * Chosen rows side by side; see `recordGatherRows` for the operands.
 *
 * Workgroup: 64 invocations, four values each. Dispatch: `ceil(numRows * rowSize / 256)`, folded.
 * Needs 3 storage buffers, no workgroup memory; default limits. Its reference is one line of the test.
 */
export const gatherRowsKernel = defineKernel({
  label: 'gather-rows',
  code,
  bindings: { params: 'uniform', rows: 'read-only-storage', source: 'read-only-storage', output: 'storage' },
  constants: {},
  workgroupSize: () => [64, 1, 1],
  workgroups: ({ numValues }: { numValues: number }) => Math.ceil(numValues / 256),
});

/**
 * Adds one dispatch: `output[r] = source[rows[r]]`.
 *
 * @throws {KernelError} `kernel-dispatch` when an operand does not fit the shape; nothing was added then
 */
export function recordGatherRows(step: ComputeStep, { numRows, rowSize, rows, source, output }: GatherRowsOperands): void {
  const { label } = gatherRowsKernel;
  requireCount(label, 'numRows', numRows);
  if (!Number.isInteger(rowSize) || rowSize <= 0 || rowSize % 4 !== 0) {
    throw refusal(label, `rowSize is ${rowSize}, not a positive multiple of 4.`);
  }
  requireBindingWords(label, 'rows', rows, numRows);
  requireBindingWords(label, 'output', output, numRows * rowSize);
  step.dispatch(gatherRowsKernel, {
    shape: { numValues: numRows * rowSize },
    bindings: { params: step.upload(packParams({ numRows: 'u32', rowSize: 'u32' }, { numRows, rowSize })), rows, source, output },
  });
}
