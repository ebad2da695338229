import { Mamba2Consumer } from '@bufferwise/adapter-ssm';
import type { ComputeContext } from '@bufferwise/gpu-kernels';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import { type MemoryOptions, mamba2Layers } from '../description/cache-layers.ts';
import { convolvedChannels, type Mamba2Description } from '../description/mamba2.ts';
import type { ModelDescription } from '../description/model-description.ts';
import { recordRowNorm } from '../model/dense/row-norm.ts';
import type { GpuMamba2Weights } from '../model/gpu-weights.ts';
import type { StepInput } from './gpu-model.ts';
import { projectedStride, type Workspace } from './workspace.ts';

interface MambaMixerOptions {
  model: ModelDescription;
  layout: StorageLayout;
  memory: MemoryOptions;
  workspace: Workspace;
}

/** Mamba-2 layers: projections and gated norm around the consumer that keeps states, convolves and recurs. */
export class MambaMixer {
  readonly consumer: Mamba2Consumer;
  readonly #normEps: number;
  readonly #workspace: Workspace;

  constructor(context: ComputeContext, { model, layout, memory, workspace }: MambaMixerOptions) {
    this.consumer = new Mamba2Consumer(context, { layers: mamba2Layers(model, memory) });
    this.consumer.bind(layout);
    this.#normEps = model.normEps;
    this.#workspace = workspace;
  }

  /** Uploads what all Mamba-2 layers of a step share, and returns what records one of them. */
  begin(input: StepInput): (mixer: Mamba2Description, weights: GpuMamba2Weights, layerId: number) => void {
    const { compute, consumerStep, numTokens, branches } = input;
    const mamba2 = this.consumer.begin(consumerStep, compute);
    const { projection, convolved, mixed } = this.#workspace;
    return (mixer, weights, layerId) => {
      const { inner, numGroups } = mixer;
      const projected = { buffer: projection, offsetWords: 0, strideWords: projectedStride(mixer) };
      branches.enter(weights, weights.inProjection, projected);
      mamba2.layer(layerId, {
        projection: projected,
        convWeight: { buffer: weights.convWeight },
        convBias: { buffer: weights.convBias },
        headParams: { buffer: weights.headParams },
        xBC: { buffer: convolved, offsetWords: 0, strideWords: convolvedChannels(mixer) },
        y: { buffer: mixed, offsetWords: 0, strideWords: inner },
      });
      // z is what a row of the projection begins with.
      recordRowNorm(compute, {
        numTokens,
        runSize: inner / numGroups,
        numRuns: numGroups,
        values: { buffer: mixed },
        gate: projected,
        weight: weights.gatedNorm,
        eps: this.#normEps,
      });
      branches.leave(weights, weights.outProjection, { buffer: mixed });
    };
  }
}
