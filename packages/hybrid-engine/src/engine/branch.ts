import type { ComputeStep } from '@bufferwise/gpu-kernels';
import type { ModelDescription } from '../description/model-description.ts';
import { recordMatmul } from '../model/dense/matmul.ts';
import type { Rows } from '../model/dense/operands.ts';
import { recordRowNorm } from '../model/dense/row-norm.ts';
import type { GpuProjection } from '../model/gpu-weights.ts';
import type { Workspace } from './workspace.ts';

/** Where the branches of one step begin and end: the residual stream. */
export class Branches {
  readonly #step: ComputeStep;
  readonly #model: ModelDescription;
  readonly #workspace: Workspace;
  readonly #numTokens: number;

  constructor(step: ComputeStep, model: ModelDescription, workspace: Workspace, numTokens: number) {
    this.#step = step;
    this.#model = model;
    this.#workspace = workspace;
    this.#numTokens = numTokens;
  }

  /** The stream, normed where the branch has a norm before it, through the first projection of a branch. */
  enter(
    { normBefore }: { normBefore?: GPUBuffer },
    projection: GpuProjection,
    output: Rows,
    epilogue: 'store' | 'swiglu' | 'geglu' = 'store',
  ): void {
    recordMatmul(this.#step, {
      numTokens: this.#numTokens,
      input: { buffer: this.#workspace.hidden },
      norm: normBefore && { weight: normBefore, eps: this.#model.normEps },
      ...projection,
      output,
      epilogue,
    });
  }

  /** Through the last projection of a branch, and the norm behind it where it has one, back to the stream. */
  leave({ normAfter }: { normAfter?: GPUBuffer }, projection: GpuProjection, input: Rows): void {
    const { hidden, branch } = this.#workspace;
    const { residualScale: scale, normEps: eps, width } = this.#model;
    const numTokens = this.#numTokens;
    if (normAfter === undefined) {
      recordMatmul(this.#step, { numTokens, input, ...projection, output: { buffer: hidden }, epilogue: 'add', scale });
      return;
    }
    recordMatmul(this.#step, { numTokens, input, ...projection, output: { buffer: branch } });
    recordRowNorm(this.#step, {
      numTokens,
      runSize: width,
      values: { buffer: hidden },
      weight: normAfter,
      eps,
      added: { rows: { buffer: branch }, scale },
    });
  }
}
