import {
  type ComputeContext,
  type Mamba2Layout,
  type Mamba2Shape,
  mamba2Layout,
  packRequests,
  type RequestPages,
  recordMamba2Mixer,
  warmUpMamba2,
} from '@bufferwise/gpu-kernels';
import { recordGatedNorm } from '../model/dense/gated-norm.ts';
import { recordMatmul } from '../model/dense/matmul.ts';
import type { GpuMambaWeights } from '../model/gpu-weights.ts';
import { type HybridModelConfig, ssmProjectionSize } from '../model/model-config.ts';
import type { StepInput } from './gpu-model.ts';
import type { BoundPages } from './paged-buffers.ts';
import type { Workspace } from './workspace.ts';

/** Mamba-2 layers: projection, convolution and recurrence on the request's own pages, gated norm, projection back. */
export class MambaMixer {
  readonly #config: HybridModelConfig;
  readonly #workspace: Workspace;
  readonly #shape: Mamba2Shape;
  readonly #layout: Mamba2Layout;

  constructor(config: HybridModelConfig, workspace: Workspace) {
    this.#config = config;
    this.#workspace = workspace;
    const { ssmNumHeads: numHeads, ssmHeadDim: headDim, ssmState: stateSize, ssmConvWidth: convWidth } = config;
    this.#shape = { numHeads, headDim, stateSize, numGroups: 1, convWidth };
    this.#layout = mamba2Layout(this.#shape);
  }

  warmUp(context: ComputeContext): Promise<void> {
    return warmUpMamba2(context, this.#shape);
  }

  /** Uploads what all Mamba layers of a step share, and returns what records one of them. */
  begin({ step, chunks, numTokens, pagesOf }: StepInput): (weights: GpuMambaWeights, layerId: number) => void {
    const requests = packRequests(
      step,
      chunks.map(({ tokens }) => tokens.length),
    );
    const { hidden, projection, convolved, mixed } = this.#workspace;
    const { normEps: eps, ssmInner } = this.#config;
    const rowWords = ssmProjectionSize(this.#config);
    return (weights, layerId) => {
      recordMatmul(step, {
        numTokens,
        input: { buffer: hidden },
        norm: { weight: weights.norm1, eps },
        weight: weights.inProjection,
        output: { buffer: projection },
      });
      recordMamba2Mixer(step, this.#shape, {
        requests,
        projection: { buffer: projection, offsetWords: 0, strideWords: rowWords },
        convWeight: { buffer: weights.convWeight },
        convBias: { buffer: weights.convBias },
        headParams: { buffer: weights.headParams },
        tail: requestPages(pagesOf({ layerId, role: 'conv_state' })),
        state: requestPages(pagesOf({ layerId, role: 'ssm_state' })),
        xBC: { buffer: convolved, offsetWords: 0, strideWords: this.#layout.numChannels },
        y: { buffer: mixed, offsetWords: 0, strideWords: ssmInner },
      });
      recordGatedNorm(step, {
        numTokens,
        rowSize: ssmInner,
        values: { buffer: mixed },
        gate: { buffer: projection, offsetWords: this.#layout.projection.z, strideWords: rowWords },
        weight: weights.gatedNorm,
        eps,
      });
      recordMatmul(step, {
        numTokens,
        input: { buffer: mixed },
        weight: weights.outProjection,
        output: { buffer: hidden },
        epilogue: 'add',
      });
    };
  }
}

function requestPages({ pool, table, pageStrideWords }: BoundPages): RequestPages {
  return { pool, baseWords: 0, strideWords: pageStrideWords, pageIndex: { buffer: table } };
}
