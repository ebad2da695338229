import type { ConsumerHarness, ConsumerMix } from '@bufferwise/adapter-kit/conformance/consumer';
import { ComputeContext } from '@bufferwise/gpu-kernels';
import { attentionLayerConfig, type LegacyAttentionLayer } from '../attention/attention-layer.ts';
import { LegacyAttentionConsumer, type LegacyAttentionWork } from '../attention/legacy-attention-consumer.ts';
import { DirtyWebGpuDevice } from './dirty-device-rig.ts';
import { activations, LayerOutputs, uploadedRows } from './rows-rig.ts';

export const TOKENS_PER_BLOCK = 4;
/** Sizes that all attention layers of the tests have. */
export const HEADS = { numQueryHeads: 2, numKvHeads: 1, headDim: 32 } as const;

const QUERY_WIDTH = HEADS.numQueryHeads * HEADS.headDim;
const KEY_WIDTH = HEADS.numKvHeads * HEADS.headDim;
const ROW_WIDTH = QUERY_WIDTH + 2 * KEY_WIDTH;

/** Layers of a mix, as the consumer and as the suite want them. */
export interface AttentionMix extends ConsumerMix {
  readonly attentionLayers: readonly LegacyAttentionLayer[];
}

export function attentionMix(name: string, attentionLayers: readonly LegacyAttentionLayer[]): AttentionMix {
  return { name, attentionLayers, layers: attentionLayers.map((layer) => attentionLayerConfig(layer, TOKENS_PER_BLOCK)) };
}

/** Queries, keys and values of a step in one row each, as a projection leaves them. Queries are large, so that some keys count most. */
export function attentionWork(
  compute: LegacyAttentionWork['compute'],
  seeds: Uint32Array,
  outputs: LayerOutputs,
): LegacyAttentionWork {
  return {
    compute,
    rows(layerId) {
      const rows = activations(seeds, layerId, ROW_WIDTH);
      for (let at = 0; at < rows.length; at += ROW_WIDTH) for (let i = 0; i < QUERY_WIDTH; i++) rows[at + i] *= 4;
      const queries = uploadedRows(compute, rows, ROW_WIDTH);
      const keys = { ...queries, offsetWords: QUERY_WIDTH };
      const values = { ...queries, offsetWords: QUERY_WIDTH + KEY_WIDTH };
      return { queries, keys, values, output: outputs.of(layerId, seeds.length) };
    },
  };
}

/** The legacy attention consumer on a GPU whose memory nobody has cleared. */
export function attentionHarness(
  device: GPUDevice,
  mixes: readonly AttentionMix[],
  tolerance: number,
): ConsumerHarness<LegacyAttentionWork> {
  const context = ComputeContext.of(device);
  const outputs = new LayerOutputs(device, QUERY_WIDTH);
  return {
    mixes,
    tolerance,
    tokensPerBlock: TOKENS_PER_BLOCK,
    device: () => new DirtyWebGpuDevice(device),
    create: (mix) =>
      new LegacyAttentionConsumer(context, {
        layers: (mix as AttentionMix).attentionLayers,
        tokensPerBlock: TOKENS_PER_BLOCK,
      }),
    run(consumer, step, seeds) {
      const compute = context.step('legacy attention');
      consumer.record(step, attentionWork(compute, concatenated(seeds), outputs));
      return outputs.submit(
        compute,
        consumer.layers.map(({ layerId }) => layerId),
        seeds.map(({ length }) => length),
      );
    },
  };
}

export function concatenated(parts: readonly Uint32Array[]): Uint32Array {
  const whole = new Uint32Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
