import type { ConsumerHarness, ConsumerMix } from '@bufferwise/adapter-kit/conformance/consumer';
import { ComputeContext, mamba2Layout, packHeadParams, type ReplayRing } from '@bufferwise/gpu-kernels';
import { storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { LegacyMambaConsumer, type LegacyMambaRows, type LegacyMambaWork } from '../mamba/legacy-mamba-consumer.ts';
import { type LegacyMambaLayer, mambaLayerConfig } from '../mamba/mamba-layer.ts';
import { concatenated, TOKENS_PER_BLOCK } from './attention-rig.ts';
import { DirtyWebGpuDevice } from './dirty-device-rig.ts';
import { activations, LayerOutputs, uploadedRows } from './rows-rig.ts';

/** Sizes that all Mamba layers of the tests have. */
export const SHAPE = { numHeads: 2, headDim: 16, stateSize: 16, numGroups: 1, convWidth: 4 } as const;

const { innerSize, numChannels, projection } = mamba2Layout(SHAPE);

/** Layers of a mix, as the consumer and as the suite want them. */
export interface MambaMix extends ConsumerMix {
  readonly mambaLayers: readonly LegacyMambaLayer[];
  readonly ring: ReplayRing | undefined;
}

export function mambaMix(name: string, mambaLayers: readonly LegacyMambaLayer[], ring?: ReplayRing): MambaMix {
  return { name, mambaLayers, ring, layers: mambaLayers.map((layer) => mambaLayerConfig(layer, ring)) };
}

/** Weights of a layer that remembers for some tens of tokens, and rows as its projection leaves them. */
export class MambaInputs {
  readonly outputs: LayerOutputs;
  readonly #convWeight: GPUBuffer;
  readonly #convBias: GPUBuffer;
  readonly #headParams: GPUBuffer;

  constructor(device: GPUDevice) {
    this.outputs = new LayerOutputs(device, innerSize);
    const weights = (seed: number, length: number, middle: number, spread: number) =>
      activations([seed], 0, length).map((value) => middle + spread * value);
    this.#convWeight = storageBuffer(device, weights(11, numChannels * SHAPE.convWidth, 0, 0.7));
    this.#convBias = storageBuffer(device, weights(12, numChannels, 0, 0.5));
    const head = { dtBias: weights(13, 2, -1, 0.5), aLog: weights(14, 2, -2, 0.5), dSkip: weights(15, 2, 1, 0.5) };
    this.#headParams = storageBuffer(device, packHeadParams(head));
  }

  rows(compute: LegacyMambaWork['compute'], seeds: Uint32Array, layerId: number): LegacyMambaRows {
    const rows = activations(seeds, layerId, projection.rowWords);
    return {
      projection: uploadedRows(compute, rows, projection.rowWords),
      convWeight: { buffer: this.#convWeight },
      convBias: { buffer: this.#convBias },
      headParams: { buffer: this.#headParams },
      xBC: {
        buffer: this.outputs.buffer('behind the convolution', 4 * numChannels * Math.max(1, seeds.length)),
        offsetWords: 0,
        strideWords: numChannels,
      },
      y: { buffer: this.outputs.of(layerId, Math.max(1, seeds.length)), offsetWords: 0, strideWords: innerSize },
    };
  }
}

/** The legacy Mamba consumer on a GPU whose memory nobody has cleared. */
export function mambaHarness(device: GPUDevice, mixes: readonly MambaMix[]): ConsumerHarness<LegacyMambaWork> {
  const context = ComputeContext.of(device);
  const inputs = new MambaInputs(device);
  return {
    mixes,
    tokensPerBlock: TOKENS_PER_BLOCK,
    device: () => new DirtyWebGpuDevice(device),
    create: (mix) => new LegacyMambaConsumer(context, { layers: (mix as MambaMix).mambaLayers, ring: (mix as MambaMix).ring }),
    run(consumer, step, seeds) {
      const compute = context.step('legacy Mamba');
      const all = concatenated(seeds);
      consumer.record(step, { compute, rows: (layerId) => inputs.rows(compute, all, layerId) });
      return inputs.outputs.submit(
        compute,
        consumer.layers.map(({ layerId }) => layerId),
        seeds.map(({ length }) => length),
      );
    },
  };
}
