import { AttentionConsumer } from '@bufferwise/adapter-attention';
import type { ComputeContext, ComputeStep, StepData } from '@bufferwise/gpu-kernels';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import type { AttentionDescription } from '../description/attention.ts';
import { attentionLayers, type MemoryOptions } from '../description/cache-layers.ts';
import type { ModelDescription } from '../description/model-description.ts';
import type { RotaryDescription } from '../description/rotary.ts';
import { recordRope, uploadRotations } from '../model/dense/rope.ts';
import { recordRowNorm } from '../model/dense/row-norm.ts';
import type { GpuAttentionWeights } from '../model/gpu-weights.ts';
import type { StepInput } from './gpu-model.ts';
import { qkvSize, type Workspace } from './workspace.ts';

interface AttentionMixerOptions {
  model: ModelDescription;
  layout: StorageLayout;
  memory: MemoryOptions;
  workspace: Workspace;
  /** Of the tensor `rope_freqs.weight`, where the model has it. */
  ropeFactors: Float32Array | undefined;
}

/** Attention layers: projections, norms and positions around the consumer that keeps keys and values, and attends. */
export class AttentionMixer {
  readonly consumer: AttentionConsumer;
  readonly #normEps: number;
  readonly #ropeFactors: Float32Array | undefined;
  readonly #workspace: Workspace;

  constructor(context: ComputeContext, { model, layout, memory, workspace, ropeFactors }: AttentionMixerOptions) {
    const layers = attentionLayers(model, memory);
    this.consumer = new AttentionConsumer(context, { layers, tokensPerBlock: layout.tokensPerBlock });
    this.consumer.bind(layout, { scratch: true });
    this.#normEps = model.normEps;
    this.#ropeFactors = ropeFactors;
    this.#workspace = workspace;
  }

  /** Uploads what all attention layers of a step share, and returns what records one of them. */
  begin(input: StepInput): (mixer: AttentionDescription, weights: GpuAttentionWeights, layerId: number) => void {
    const { compute, consumerStep, numTokens, branches } = input;
    const attention = this.consumer.begin(consumerStep, compute);
    const rotations = this.#rotations(input);
    const { qkv, attended: output } = this.#workspace;
    return (mixer, weights, layerId) => {
      const { numHeads, numKvHeads, headDim, rotary } = mixer;
      const strideWords = qkvSize(mixer);
      const rows = { buffer: qkv, strideWords };
      branches.enter(weights, weights.qkv, rows);
      this.#normHeads(compute, numTokens, mixer, weights);
      if (rotary) {
        const heads = { numTokens, numHeads: numHeads + numKvHeads, headDim, heads: rows };
        recordRope(compute, { ...heads, rotary, rotations: rotations(rotary) });
      }
      const fromHead = (head: number) => ({ buffer: qkv, offsetWords: head * headDim, strideWords });
      const [queries, keys, values] = [fromHead(0), fromHead(numHeads), fromHead(numHeads + numKvHeads)];
      attention.layer(layerId, { queries, keys, values, output });
      branches.leave(weights, weights.out, { buffer: output });
    };
  }

  /** Norms of queries and keys, where the layer has them. */
  #normHeads(
    compute: ComputeStep,
    numTokens: number,
    mixer: AttentionDescription,
    { queryNorm, keyNorm }: GpuAttentionWeights,
  ): void {
    const { numHeads, numKvHeads, headDim, queryKeyNorm } = mixer;
    const perHead = queryKeyNorm === 'head';
    const norm = (weight: GPUBuffer, firstHead: number, count: number) =>
      recordRowNorm(compute, {
        numTokens,
        runSize: perHead ? headDim : count * headDim,
        numRuns: perHead ? count : 1,
        values: { buffer: this.#workspace.qkv, offsetWords: firstHead * headDim, strideWords: qkvSize(mixer) },
        weight,
        sharesWeight: perHead,
        eps: this.#normEps,
      });
    if (queryNorm) norm(queryNorm, 0, numHeads);
    if (keyNorm) norm(keyNorm, numHeads, numKvHeads);
  }

  /** Uploads the rotations of each kind of layer when the first one asks. */
  #rotations({ compute, consumerStep, numTokens }: StepInput): (rotary: RotaryDescription) => StepData {
    const positions = new Uint32Array(numTokens);
    let row = 0;
    for (const request of consumerStep.requests) {
      for (let i = 0; i < request.numTokens; i++) positions[row++] = request.start + i;
    }
    const uploaded = new Map<string, StepData>();
    return (rotary) => {
      const key = JSON.stringify(rotary);
      const factors = rotary.hasFactors ? this.#ropeFactors : undefined;
      const rotations = uploaded.get(key) ?? uploadRotations(compute, positions, rotary, factors);
      uploaded.set(key, rotations);
      return rotations;
    };
  }
}
