import { describeTensors } from '../description/describe-tensors.ts';
import type { FeedForwardDescription } from '../description/feed-forward.ts';
import type { LayerDescription, ModelDescription } from '../description/model-description.ts';
import { tensorFaults } from '../description/tensor-faults.ts';
import { dequantise } from '../gguf/dequantise.ts';
import { type GpuMatrix, type PackedMatrix, packBias, packMatrix } from './dense/matrix.ts';
import type { EngineModel } from './engine-model.ts';
import { describeFaults, ModelError } from './model-error.ts';
import type { WeightTensor } from './weight-tensor.ts';

/** A matrix as `recordMatmul` takes it, with its bias where it has one. */
export interface GpuProjection {
  readonly weight: GpuMatrix;
  readonly bias?: GPUBuffer;
}

/** What every branch of the residual stream has: norms `[width] f32`, where the layer norms there. */
interface GpuBranchWeights {
  readonly normBefore?: GPUBuffer;
  readonly normAfter?: GPUBuffer;
}

export interface GpuAttentionWeights extends GpuBranchWeights {
  readonly kind: 'attention';
  /** width -> queries, keys and values side by side. */
  readonly qkv: GpuProjection;
  /** `[headDim]`, or a row of queries; absent without norms of queries and keys. */
  readonly queryNorm?: GPUBuffer;
  readonly keyNorm?: GPUBuffer;
  /** numHeads × headDim -> width. */
  readonly out: GpuProjection;
}

export interface GpuMamba2Weights extends GpuBranchWeights {
  readonly kind: 'mamba2';
  /** width -> z, x, B, C and dt side by side. */
  readonly inProjection: GpuProjection;
  /** `[convolvedChannels, convWidth] f32`, the newest token's weight last. */
  readonly convWeight: GPUBuffer;
  /** `[convolvedChannels] f32`. */
  readonly convBias: GPUBuffer;
  /** `[3, numHeads] f32`: bias of dt, logarithm of the negative rate, skip. */
  readonly headParams: GPUBuffer;
  /** `[inner] f32`. */
  readonly gatedNorm: GPUBuffer;
  /** inner -> width. */
  readonly outProjection: GpuProjection;
}

export interface GpuFeedForwardWeights extends GpuBranchWeights {
  /** width -> 2 × hidden, in the order `gate-up`. */
  readonly gateUp: GpuProjection;
  /** hidden -> width. */
  readonly down: GpuProjection;
}

export interface GpuLayerWeights {
  readonly mixer: GpuAttentionWeights | GpuMamba2Weights;
  readonly feedForward?: GpuFeedForwardWeights;
}

/** `GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST`; the globals that carry the flags are missing in Node. */
const STORAGE_COPY_DST = 0x80 | 0x08;

/** The weights of one model on one device: uploaded once, read by every step, owned by whoever uploaded them. */
export class GpuWeights {
  /** width -> vocabSize: for `recordEmbed`. */
  readonly embedding: GpuMatrix;
  /** width -> vocabSize: for the logits. The same where the output is tied. */
  readonly output: GpuMatrix;
  /** `[width]`, before the logits. */
  readonly norm: GPUBuffer;
  /** In the order of the description. */
  readonly layers: readonly GpuLayerWeights[];
  /** Device memory of all weights. */
  readonly bytes: number;
  readonly #buffers: readonly GPUBuffer[];

  /**
   * Uploads the weights of a model. F16 matrices stay as they are, everything else becomes f32.
   *
   * @throws {ModelError} `model-weights` when the tensors are not those of the description, `model-memory` when the device cannot
   *   hold them; nothing stays allocated then
   */
  static async upload(device: GPUDevice, model: Pick<EngineModel, 'description' | 'tensors'>): Promise<GpuWeights> {
    const faults = tensorFaults(describeTensors(model.description), model.tensors);
    if (faults.length > 0) {
      const message = `The tensors are not those of the description: ${describeFaults(faults)}. Take both from one file.`;
      throw new ModelError('model-weights', message, { tensor: faults[0].path, faults });
    }
    device.pushErrorScope('out-of-memory');
    const upload = new Upload(device, model.tensors);
    let weights: GpuWeights | undefined;
    let refusal: unknown;
    try {
      weights = new GpuWeights(model.description, upload);
    } catch (error) {
      refusal = error;
    }
    const outOfMemory = await device.popErrorScope();
    if (weights && !outOfMemory) return weights;
    upload.destroy();
    if (refusal) throw refusal;
    throw new ModelError(
      'model-memory',
      `The device has no memory for ${upload.bytes} bytes of weights (${outOfMemory?.message}). Free memory or take a smaller model.`,
    );
  }

  private constructor(description: ModelDescription, upload: Upload) {
    this.layers = description.layers.map((layer, index) => uploadLayer(layer, upload, `blk.${index}`));
    this.norm = upload.vector('output_norm.weight');
    this.embedding = upload.projection(['token_embd']).weight;
    this.output = description.tiedOutput ? this.embedding : upload.projection(['output']).weight;
    this.bytes = upload.bytes;
    this.#buffers = upload.buffers;
  }

  /** Frees the device memory. Steps submitted before still run; nothing may use the weights afterwards. */
  destroy(): void {
    for (const buffer of this.#buffers) buffer.destroy();
  }
}

function uploadLayer(layer: LayerDescription, upload: Upload, prefix: string): GpuLayerWeights {
  const { mixer, feedForward, normBefore, normAfter } = layer;
  const branch: GpuBranchWeights = {
    normBefore: normBefore ? upload.vector(`${prefix}.attn_norm.weight`) : undefined,
    normAfter: normAfter ? upload.vector(`${prefix}.post_attention_norm.weight`) : undefined,
  };
  return {
    mixer: { ...branch, ...uploadMixer(mixer, upload, prefix) },
    feedForward: feedForward && uploadFeedForward(feedForward, layer, upload, prefix),
  };
}

function uploadFeedForward(
  { hasBias }: FeedForwardDescription,
  { normBefore, normAfter }: LayerDescription,
  upload: Upload,
  prefix: string,
): GpuFeedForwardWeights {
  return {
    normBefore: normBefore ? upload.vector(`${prefix}.ffn_norm.weight`) : undefined,
    normAfter: normAfter ? upload.vector(`${prefix}.post_ffw_norm.weight`) : undefined,
    gateUp: upload.projection([`${prefix}.ffn_gate`, `${prefix}.ffn_up`], { hasBias, order: 'gate-up' }),
    down: upload.projection([`${prefix}.ffn_down`], { hasBias }),
  };
}

function uploadMixer(mixer: LayerDescription['mixer'], upload: Upload, prefix: string): GpuAttentionWeights | GpuMamba2Weights {
  if (mixer.kind === 'attention') {
    const normed = mixer.queryKeyNorm !== 'none';
    return {
      kind: 'attention',
      qkv: upload.projection([`${prefix}.attn_q`, `${prefix}.attn_k`, `${prefix}.attn_v`], { hasBias: mixer.hasInputBias }),
      queryNorm: normed ? upload.vector(`${prefix}.attn_q_norm.weight`) : undefined,
      keyNorm: normed ? upload.vector(`${prefix}.attn_k_norm.weight`) : undefined,
      out: upload.projection([`${prefix}.attn_output`], { hasBias: mixer.hasOutputBias }),
    };
  }
  const rates = upload.values(`${prefix}.ssm_a`);
  return {
    kind: 'mamba2',
    inProjection: upload.projection([`${prefix}.ssm_in`]),
    convWeight: upload.vector(`${prefix}.ssm_conv1d.weight`),
    convBias: upload.vector(`${prefix}.ssm_conv1d.bias`),
    headParams: upload.joined(`${prefix} head parameters`, [
      upload.values(`${prefix}.ssm_dt.bias`),
      rates.map((rate) => Math.log(-rate)),
      upload.values(`${prefix}.ssm_d`),
    ]),
    gatedNorm: upload.vector(`${prefix}.ssm_norm.weight`),
    outProjection: upload.projection([`${prefix}.ssm_out`]),
  };
}

/** One upload under way: the buffers made so far, so that a failure can give them back. */
class Upload {
  readonly buffers: GPUBuffer[] = [];
  bytes = 0;
  readonly #device: GPUDevice;
  readonly #tensors: ReadonlyMap<string, WeightTensor>;

  constructor(device: GPUDevice, tensors: ReadonlyMap<string, WeightTensor>) {
    this.#device = device;
    this.#tensors = tensors;
  }

  /** The elements of a tensor, as numbers. */
  values(name: string): Float32Array {
    return dequantise(this.#tensor(name));
  }

  /** A tensor of any shape as f32. */
  vector(name: string): GPUBuffer {
    return this.joined(name, [this.values(name)]);
  }

  /** Values one behind the other. */
  joined(label: string, parts: readonly Float32Array[]): GPUBuffer {
    const values = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
    let length = 0;
    for (const part of parts) {
      values.set(part, length);
      length += part.length;
    }
    return this.#buffer(label, values);
  }

  /** Matrices of one input, with their outputs side by side, and their biases. */
  projection(
    names: readonly string[],
    { hasBias = false, order }: { hasBias?: boolean; order?: PackedMatrix['order'] } = {},
  ): GpuProjection {
    const tensorsOf = (part: string) => names.map((name) => this.#tensor(`${name}.${part}`));
    const label = (part: string) => names.map((name) => `${name}.${part}`).join(' + ');
    const { data, ...layout } = packMatrix(tensorsOf('weight'), order);
    const weight = { ...layout, buffer: this.#buffer(label('weight'), data) };
    return hasBias ? { weight, bias: this.#buffer(label('bias'), packBias(tensorsOf('bias'), order)) } : { weight };
  }

  destroy(): void {
    for (const buffer of this.buffers) buffer.destroy();
  }

  #buffer(name: string, data: Float32Array<ArrayBuffer> | Uint16Array<ArrayBuffer>): GPUBuffer {
    const { limits, queue } = this.#device;
    const most = Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize);
    if (data.byteLength > most) {
      throw new ModelError(
        'model-memory',
        `${name} has ${data.byteLength} bytes, a binding of this device ${most}. ` +
          'Request the device with a larger maxStorageBufferBindingSize and maxBufferSize.',
        { tensor: name },
      );
    }
    const buffer = this.#device.createBuffer({ label: `weights ${name}`, size: data.byteLength, usage: STORAGE_COPY_DST });
    this.buffers.push(buffer);
    this.bytes += data.byteLength;
    queue.writeBuffer(buffer, 0, data);
    return buffer;
  }

  #tensor(name: string): WeightTensor {
    return this.#tensors.get(name) as WeightTensor;
  }
}
