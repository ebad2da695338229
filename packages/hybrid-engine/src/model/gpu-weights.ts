import { type GpuMatrix, type PackedMatrix, packMatrix } from './dense/matrix.ts';
import { type HybridModelConfig, layerKind } from './model-config.ts';
import { ModelError } from './model-error.ts';
import { type Tensor, toFloat32 } from './safetensors.ts';
import { checkWeights } from './weights.ts';

/** What every layer has around its mixer. Vectors are f32, matrices as `recordMatmul` takes them. */
interface GpuBlockWeights {
  /** `[dModel]`. */
  readonly norm1: GPUBuffer;
  /** `[dModel]`. */
  readonly norm2: GPUBuffer;
  /** dModel -> 2 × mlpHidden, in the order `gate-up`. */
  readonly gateUp: GpuMatrix;
  /** mlpHidden -> dModel. */
  readonly down: GpuMatrix;
}

export interface GpuAttentionWeights extends GpuBlockWeights {
  readonly kind: 'S' | 'F';
  /** dModel -> `qkvSize`: queries, keys and values side by side. */
  readonly qkv: GpuMatrix;
  /** numHeads × headDim -> dModel. */
  readonly out: GpuMatrix;
}

export interface GpuMambaWeights extends GpuBlockWeights {
  readonly kind: 'M';
  /** dModel -> `ssmProjectionSize`: z, x, B, C and dt side by side. */
  readonly inProjection: GpuMatrix;
  /** `[ssmConvChannels, ssmConvWidth]`, the newest token's weight last. */
  readonly convWeight: GPUBuffer;
  /** `[ssmConvChannels]`. */
  readonly convBias: GPUBuffer;
  /** `[3, ssmNumHeads]`: dtBias, aLog, dSkip. */
  readonly headParams: GPUBuffer;
  /** `[ssmInner]`. */
  readonly gatedNorm: GPUBuffer;
  /** ssmInner -> dModel. */
  readonly outProjection: GpuMatrix;
}

export type GpuLayerWeights = GpuAttentionWeights | GpuMambaWeights;

/** `GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST`; the globals that carry the flags are missing in Node. */
const STORAGE_COPY_DST = 0x80 | 0x08;

/** The weights of one model on one device: uploaded once, read by every step, owned by whoever uploaded them. */
export class GpuWeights {
  /** dModel -> vocabSize: for `recordEmbed`, and for the logits. */
  readonly embedding: GpuMatrix;
  /** `[dModel]`, before the logits. */
  readonly norm: GPUBuffer;
  /** In the order of `layerPattern`. */
  readonly layers: readonly GpuLayerWeights[];
  /** Device memory of all weights. */
  readonly bytes: number;
  readonly #buffers: readonly GPUBuffer[];

  /**
   * Uploads the weights of a model. F16 matrices stay as they are, everything else becomes f32; both are exact.
   *
   * @param model config and tensors that fit each other, as `readModel` gives them
   * @throws {ModelError} `model-weights` when they do not, `model-memory` when the device cannot hold them; nothing stays
   *   allocated then
   */
  static async upload(
    device: GPUDevice,
    { config, tensors }: { config: HybridModelConfig; tensors: ReadonlyMap<string, Tensor> },
  ): Promise<GpuWeights> {
    checkWeights(config, tensors);
    device.pushErrorScope('out-of-memory');
    const upload = new Upload(device, tensors);
    let weights: GpuWeights | undefined;
    let refusal: unknown;
    try {
      weights = new GpuWeights(config, upload);
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

  private constructor(config: HybridModelConfig, upload: Upload) {
    this.layers = Array.from(config.layerPattern, (_, layer) => uploadLayer(config, upload, layer));
    this.norm = upload.vector('norm.weight');
    this.embedding = upload.matrix(['embed.weight']);
    this.bytes = upload.bytes;
    this.#buffers = upload.buffers;
  }

  /** Frees the device memory. Steps submitted before still run; nothing may use the weights afterwards. */
  destroy(): void {
    for (const buffer of this.#buffers) buffer.destroy();
  }
}

function uploadLayer(config: HybridModelConfig, upload: Upload, layer: number): GpuLayerWeights {
  const prefix = `layers.${layer}`;
  const mixer = `${prefix}.mixer`;
  const block = {
    norm1: upload.vector(`${prefix}.norm1.weight`),
    norm2: upload.vector(`${prefix}.norm2.weight`),
    gateUp: upload.matrix([`${prefix}.mlp.gate.weight`, `${prefix}.mlp.up.weight`], 'gate-up'),
    down: upload.matrix([`${prefix}.mlp.down.weight`]),
  };
  const kind = layerKind(config, layer);
  if (kind !== 'M') {
    return {
      ...block,
      kind,
      qkv: upload.matrix([`${mixer}.q.weight`, `${mixer}.k.weight`, `${mixer}.v.weight`]),
      out: upload.matrix([`${mixer}.o.weight`]),
    };
  }
  return {
    ...block,
    kind,
    inProjection: upload.matrix([`${mixer}.in_proj.weight`]),
    convWeight: upload.vector(`${mixer}.conv_weight`),
    convBias: upload.vector(`${mixer}.conv_bias`),
    headParams: upload.vector(`${mixer}.dt_bias`, `${mixer}.a_log`, `${mixer}.d_skip`),
    gatedNorm: upload.vector(`${mixer}.norm.weight`),
    outProjection: upload.matrix([`${mixer}.out_proj.weight`]),
  };
}

/** One upload under way: the buffers made so far, so that a failure can give them back. */
class Upload {
  readonly buffers: GPUBuffer[] = [];
  bytes = 0;
  readonly #device: GPUDevice;
  readonly #tensors: ReadonlyMap<string, Tensor>;

  constructor(device: GPUDevice, tensors: ReadonlyMap<string, Tensor>) {
    this.#device = device;
    this.#tensors = tensors;
  }

  /** Tensors of any shape as f32, one behind the other. */
  vector(...names: string[]): GPUBuffer {
    const parts = names.map((name) => toFloat32(this.#tensor(name)));
    const values = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
    let length = 0;
    for (const part of parts) {
      values.set(part, length);
      length += part.length;
    }
    return this.#buffer(names.join(' + '), values);
  }

  matrix(names: string[], order?: PackedMatrix['order']): GpuMatrix {
    const { data, ...layout } = packMatrix(
      names.map((name) => this.#tensor(name)),
      order,
    );
    return { ...layout, buffer: this.#buffer(names.join(' + '), data) };
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

  #tensor(name: string): Tensor {
    const tensor = this.#tensors.get(name);
    if (tensor === undefined) throw new ModelError('model-weights', `Tensor "${name}" is missing.`, { tensor: name });
    return tensor;
  }
}
