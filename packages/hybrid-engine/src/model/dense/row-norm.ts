import { type Binding, type ComputeStep, defineKernel, packParams, requireBindingWords } from '@bufferwise/gpu-kernels';
import { placeRows, type Rows, refusal, requireCount } from './operands.ts';
import code from './row-norm.wgsl';

export interface RowNormOperands {
  numTokens: number;
  /** Values that are normed together, a positive multiple of 4. */
  runSize: number;
  /** Runs of a row, side by side, each normed by itself: heads of queries, groups of heads. Default 1. */
  numRuns?: number;
  /** `[numTokens, numRuns, runSize] f32`, changed in place; offset and stride multiples of 4. */
  values: Rows;
  /** `[numRuns, runSize] f32`, or `[runSize]` where `sharesWeight`. */
  weight: Binding;
  /** Whether all runs of a row have the same weights. Default false. */
  sharesWeight?: boolean;
  /** Added to the mean square. */
  eps: number;
  /** `[numTokens, numRuns, runSize] f32`: what is normed is `values * silu(gate)`. Read, in another buffer, placed like `values`. */
  gate?: Rows;
  /** Instead: `scale` times the norm of other rows of the same shape is added to `values`. Read, in another buffer. */
  added?: { rows: Rows; scale: number };
}

const MODE = { plain: 0, gated: 1, added: 2 } as const;

const paramLayout = {
  numTokens: 'u32',
  numRuns: 'u32',
  runSize: 'u32',
  weightStep: 'u32',
  valuesOffset: 'u32',
  valuesStride: 'u32',
  otherOffset: 'u32',
  otherStride: 'u32',
  eps: 'f32',
  scale: 'f32',
} as const;

/**
 * RMS norms of rows or of runs within them; see `recordRowNorm` for the operands.
 *
 * Constants: `MODE` (0 plain, 1 gated, 2 added).
 * Workgroup: 64 invocations over one run. Dispatch: `numTokens * numRuns`, folded.
 * Needs 3 storage buffers, 288 bytes of workgroup memory; default limits.
 * @see row-norm.reference.ts
 */
export const rowNormKernel = defineKernel({
  label: 'row-norm',
  code,
  bindings: { params: 'uniform', other: 'read-only-storage', weight: 'read-only-storage', values: 'storage' },
  constants: { MODE: 0 },
  workgroupSize: () => [64, 1, 1],
  workgroups: ({ numRows }: { numRows: number }) => numRows,
});

/**
 * Adds one dispatch: with `norm(v) = v / sqrt(mean(v²) + eps) * weight` for every run, `values = norm(values)`, or
 * `values = norm(values * silu(gate))`, or `values += scale * norm(added)`.
 *
 * @throws {KernelError} `kernel-dispatch` when an operand does not fit the shape; nothing was added then
 */
export function recordRowNorm(step: ComputeStep, operands: RowNormOperands): void {
  const { numTokens, runSize, numRuns = 1, values, weight, sharesWeight = false, eps, gate, added } = operands;
  const { label } = rowNormKernel;
  requireCount(label, 'numTokens', numTokens);
  for (const [name, value, multiple] of [
    ['runSize', runSize, 4],
    ['numRuns', numRuns, 1],
  ] as const) {
    if (Number.isInteger(value) && value > 0 && value % multiple === 0) continue;
    throw refusal(label, `${name} is ${value}, not a positive multiple of ${multiple}.`);
  }
  if (gate && added) throw refusal(label, 'there are a gate and rows to be added. Give one of them.');
  const place = { numRows: numTokens, rowWords: numRuns * runSize, multiple: 4 };
  const valuesPlace = placeRows(label, 'values', values, place);
  const other = gate ?? added?.rows;
  const otherPlace = other && placeRows(label, gate ? 'gate' : 'added.rows', other, place);
  requireBindingWords(label, 'weight', weight, sharesWeight ? runSize : numRuns * runSize);
  const params = packParams(paramLayout, {
    numTokens,
    numRuns,
    runSize,
    weightStep: sharesWeight ? 0 : runSize,
    valuesOffset: valuesPlace.offset,
    valuesStride: valuesPlace.stride,
    otherOffset: otherPlace?.offset ?? 0,
    otherStride: otherPlace?.stride ?? 0,
    eps,
    scale: added?.scale ?? 1,
  });
  step.dispatch(rowNormKernel, {
    shape: { numRows: numTokens * numRuns },
    constants: { MODE: gate ? MODE.gated : added ? MODE.added : MODE.plain },
    // In plain mode nothing reads other rows, but something has to be bound.
    bindings: { params: step.upload(params), other: other?.buffer ?? weight, weight, values: values.buffer },
  });
}
