import {
  type ComputeContext,
  type Mamba2Shape,
  mamba2Layout,
  packRequests,
  type RequestPages,
  recordMamba2Mixer,
  warmUpMamba2,
} from '@bufferwise/gpu-kernels';
import type { Mamba2Description } from '../description/mamba2.ts';
import type { ModelDescription } from '../description/model-description.ts';
import { recordRowNorm } from '../model/dense/row-norm.ts';
import type { GpuMamba2Weights } from '../model/gpu-weights.ts';
import type { StepInput } from './gpu-model.ts';
import type { BoundPages } from './paged-buffers.ts';
import { projectedStride, type Workspace } from './workspace.ts';

/** Mamba-2 layers: projection, convolution and recurrence on the request's own pages, gated norm, projection back. */
export class MambaMixer {
  readonly #model: ModelDescription;
  readonly #workspace: Workspace;

  constructor(model: ModelDescription, workspace: Workspace) {
    this.#model = model;
    this.#workspace = workspace;
  }

  async warmUp(context: ComputeContext): Promise<void> {
    const mixers = this.#model.layers.flatMap(({ mixer }) => (mixer.kind === 'mamba2' ? [mixer] : []));
    await Promise.all(mixers.map((mixer) => warmUpMamba2(context, shapeOf(mixer))));
  }

  /** Uploads what all Mamba layers of a step share, and returns what records one of them. */
  begin({
    step,
    chunks,
    numTokens,
    branches,
    pagesOf,
  }: StepInput): (mixer: Mamba2Description, weights: GpuMamba2Weights, layerId: number) => void {
    const requests = packRequests(
      step,
      chunks.map(({ tokens }) => tokens.length),
    );
    const { projection, convolved, mixed } = this.#workspace;
    return (mixer, weights, layerId) => {
      const shape = shapeOf(mixer);
      const layout = mamba2Layout(shape);
      const strideWords = projectedStride(mixer);
      branches.enter(weights, weights.inProjection, { buffer: projection, strideWords });
      recordMamba2Mixer(step, shape, {
        requests,
        projection: { buffer: projection, offsetWords: 0, strideWords },
        convWeight: { buffer: weights.convWeight },
        convBias: { buffer: weights.convBias },
        headParams: { buffer: weights.headParams },
        tail: requestPages(pagesOf({ layerId, role: 'conv_state' })),
        state: requestPages(pagesOf({ layerId, role: 'ssm_state' })),
        xBC: { buffer: convolved, offsetWords: 0, strideWords: layout.numChannels },
        y: { buffer: mixed, offsetWords: 0, strideWords: mixer.inner },
      });
      recordRowNorm(step, {
        numTokens,
        runSize: mixer.inner / mixer.numGroups,
        numRuns: mixer.numGroups,
        values: { buffer: mixed },
        gate: { buffer: projection, offsetWords: layout.projection.z, strideWords },
        weight: weights.gatedNorm,
        eps: this.#model.normEps,
      });
      branches.leave(weights, weights.outProjection, { buffer: mixed });
    };
  }
}

function shapeOf({ numHeads, headDim, stateSize, numGroups, convWidth }: Mamba2Description): Mamba2Shape {
  return { numHeads, headDim, stateSize, numGroups, convWidth };
}

function requestPages({ pool, table, pageStrideWords }: BoundPages): RequestPages {
  return { pool, baseWords: 0, strideWords: pageStrideWords, pageIndex: { buffer: table } };
}
