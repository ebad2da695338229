import { type Binding, type ComputeStep, defineKernel, packParams, requireBindingWords } from '@bufferwise/gpu-kernels';
import matmulCode from './matmul.wgsl';
import gatedCode from './matmul-gated.wgsl';
import operandsCode from './matmul-operands.wgsl';
import { columnQuads, type GpuMatrix, requireMatrix } from './matrix.ts';
import { placeRows, type Rows, refusal, requireCount } from './operands.ts';

/** RMS norm of the input: `x / sqrt(mean(x²) + eps) * weight`. */
export interface InputNorm {
  /** `[inSize] f32`. */
  weight: Binding;
  eps: number;
}

export interface MatmulOperands {
  /** >= 0; none adds no dispatch. */
  numTokens: number;
  /** `[numTokens, inSize] f32`, read, offset and stride multiples of 4. */
  input: Rows;
  /** Absent: the input is taken as it is. */
  norm?: InputNorm;
  /** For `swiglu` and `geglu` in the order `gate-up`, else `plain`. */
  weight: GpuMatrix;
  /** `[numColumns] f32` in the order of the columns, filled up to a multiple of 4: see `packBias`. Absent: none is added. */
  bias?: Binding;
  /** `[numTokens, outSize] f32`, in another buffer than what is read. `outSize` is `numColumns`, for a gated epilogue half of it. */
  output: Rows;
  /**
   * `store` overwrites the output, `add` adds to it; `swiglu` stores `silu(gate) * up`, `geglu` the same with the tanh
   * approximation of GELU. Default `store`.
   */
  epilogue?: 'store' | 'add' | 'swiglu' | 'geglu';
  /** What is stored or added is multiplied by this, bias and all. Default 1. */
  scale?: number;
}

const EPILOGUE = { store: 0, add: 1, swiglu: 2, geglu: 3 } as const;

const bindings = {
  params: 'uniform',
  input: 'read-only-storage',
  normWeight: 'read-only-storage',
  weight: 'read-only-storage',
  bias: 'read-only-storage',
  output: 'storage',
} as const;

const paramLayout = {
  numTokens: 'u32',
  inSize: 'u32',
  outSize: 'u32',
  inputOffset: 'u32',
  inputStride: 'u32',
  outputOffset: 'u32',
  outputStride: 'u32',
  normEps: 'f32',
  scale: 'f32',
} as const;

interface MatmulShape {
  numTokens: number;
  outSize: number;
}

/** Tokens and columns that lie side by side in one workgroup of 32 x 2 invocations. */
const COLUMNS_PER_WORKGROUP = 32 * 4;
const TOKEN_GROUPS_PER_WORKGROUP = 2;

function workgroups({ numTokens, outSize }: MatmulShape, { TOKENS }: { TOKENS: number }): [number, number, number] {
  return [Math.ceil(outSize / COLUMNS_PER_WORKGROUP), Math.ceil(numTokens / TOKENS / TOKEN_GROUPS_PER_WORKGROUP), 1];
}

/**
 * A dense layer; see `recordMatmul` for the operands.
 *
 * Constants: `TOKENS` of one invocation (1, 4 or 8), `INPUT_NORM` and `HAS_BIAS` (0 or 1), `EPILOGUE` (0 store, 1 add),
 * `WEIGHT_IS_F16` (0 or 1).
 * Workgroup: 32 x 2 invocations, each of 4 columns. Dispatch: `[ceil(outSize / 128), ceil(numTokens / TOKENS / 2), 1]`.
 * Needs 5 storage buffers, no workgroup memory; default limits.
 * @see matmul.reference.ts
 */
export const matmulKernel = defineKernel({
  label: 'matmul',
  code: `${operandsCode}\n${matmulCode}`,
  bindings,
  constants: { TOKENS: 8, INPUT_NORM: 0, HAS_BIAS: 0, EPILOGUE: 0, WEIGHT_IS_F16: 0 },
  workgroupSize: () => [32, 2, 1],
  workgroups,
});

/**
 * A dense layer of gate and up, with its activation; see `recordMatmul` for the operands.
 *
 * Constants: those of `matmulKernel`, with `TOKENS` 1 or 4 and `EPILOGUE` 2 (swiglu) or 3 (geglu).
 * Workgroup: 32 x 2 invocations, each of 4 columns. Dispatch: `[ceil(outSize / 128), ceil(numTokens / TOKENS / 2), 1]`.
 * Needs 5 storage buffers, no workgroup memory; default limits.
 * @see matmul.reference.ts
 */
export const matmulGatedKernel = defineKernel({
  label: 'matmul-gated',
  code: `${operandsCode}\n${gatedCode}`,
  bindings,
  constants: { TOKENS: 4, INPUT_NORM: 0, HAS_BIAS: 0, EPILOGUE: EPILOGUE.swiglu, WEIGHT_IS_F16: 0 },
  workgroupSize: () => [32, 2, 1],
  workgroups,
});

/**
 * Adds one dispatch: a dense layer with the norm before it and the sum or activation behind it,
 * `output[t, o] = epilogue(sum_i norm(input)[t, i] * weight[o, i] + bias[o])`.
 *
 * A token's outputs are the same, to the bit, whichever tokens come with it.
 *
 * @throws {KernelError} `kernel-dispatch` when an operand does not fit the shape; nothing was added then
 */
export function recordMatmul(step: ComputeStep, operands: MatmulOperands): void {
  const { numTokens, input, norm, weight, bias, output, epilogue = 'store', scale = 1 } = operands;
  const gated = epilogue === 'swiglu' || epilogue === 'geglu';
  const label = `matmul ${epilogue}`;
  requireCount(label, 'numTokens', numTokens);
  requireMatrix(label, 'weight', weight);
  if (gated !== (weight.order === 'gate-up'))
    throw refusal(label, `weight has its columns in the order ${weight.order}. Pack it anew.`);
  const { inSize } = weight;
  const outSize = gated ? weight.numColumns / 2 : weight.numColumns;
  const inputPlace = placeRows(label, 'input', input, { numRows: numTokens, rowWords: inSize, multiple: 4 });
  const outputPlace = placeRows(label, 'output', output, { numRows: numTokens, rowWords: outSize });
  if (norm) requireBindingWords(label, 'norm.weight', norm.weight, inSize);
  if (bias) requireBindingWords(label, 'bias', bias, 4 * columnQuads(weight.numColumns));

  const params = packParams(paramLayout, {
    numTokens,
    inSize,
    outSize,
    inputOffset: inputPlace.offset,
    inputStride: inputPlace.stride,
    outputOffset: outputPlace.offset,
    outputStride: outputPlace.stride,
    normEps: norm?.eps ?? 0,
    scale,
  });
  step.dispatch(gated ? matmulGatedKernel : matmulKernel, {
    shape: { numTokens, outSize },
    constants: {
      TOKENS: tokensPerInvocation(numTokens, gated),
      INPUT_NORM: norm ? 1 : 0,
      HAS_BIAS: bias ? 1 : 0,
      EPILOGUE: EPILOGUE[epilogue],
      WEIGHT_IS_F16: weight.format === 'f16' ? 1 : 0,
    },
    bindings: {
      params: step.upload(params),
      input: input.buffer,
      // Without a norm or a bias nothing reads it, but something has to be bound.
      normWeight: norm?.weight ?? input.buffer,
      weight: weight.buffer,
      bias: bias ?? input.buffer,
      output: output.buffer,
    },
  });
}

function tokensPerInvocation(numTokens: number, gated: boolean): number {
  if (numTokens <= 1) return 1;
  return gated || numTokens <= 4 ? 4 : 8;
}
