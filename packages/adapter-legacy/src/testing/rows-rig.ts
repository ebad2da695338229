import type { ComputeStep, TokenRows } from '@bufferwise/gpu-kernels';
import { readF32, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';

/** Activations of the tokens of a step: numbers from -1 to 1, made from seed, layer and column. */
export function activations(seeds: ArrayLike<number>, layerId: number, width: number): Float32Array {
  const rows = new Float32Array(seeds.length * width);
  for (let t = 0, at = 0; t < seeds.length; t++) {
    let word = Math.imul(seeds[t] ^ (layerId + 1), 0x9e3779b1) | 1;
    for (let i = 0; i < width; i++, at++) {
      word ^= word << 13;
      word ^= word >>> 17;
      word ^= word << 5;
      rows[at] = word / 2 ** 31;
    }
  }
  return rows;
}

/** Rows that travel with a step. */
export function uploadedRows(compute: ComputeStep, rows: Float32Array, strideWords: number, offsetWords = 0): TokenRows {
  return { buffer: compute.upload(rows), offsetWords, strideWords };
}

/** What the layers of a step put out: a buffer a layer, and all of them together for reading. */
export class LayerOutputs {
  readonly #device: GPUDevice;
  readonly #width: number;
  readonly #buffers = new Map<string, GPUBuffer>();

  /** @param width numbers of a token's row in each layer */
  constructor(device: GPUDevice, width: number) {
    this.#device = device;
    this.#width = width;
  }

  /** A buffer of at least so many bytes, the same one for the same name as long as it is large enough. */
  buffer(name: string, bytes: number): GPUBuffer {
    const known = this.#buffers.get(name);
    if (known !== undefined && known.size >= bytes) return known;
    known?.destroy();
    const made = storageBuffer(this.#device, 2 * bytes, name);
    this.#buffers.set(name, made);
    return made;
  }

  of(layerId: number, numTokens: number): GPUBuffer {
    return this.buffer(`output ${layerId}`, 4 * numTokens * this.#width);
  }

  /** Records copies, submits, and answers for each request with the rows of all layers, token after token. */
  async submit(compute: ComputeStep, layerIds: readonly number[], tokensPerRequest: readonly number[]): Promise<Float32Array[]> {
    const numTokens = tokensPerRequest.reduce((sum, count) => sum + count, 0);
    const layerBytes = 4 * numTokens * this.#width;
    const all = this.buffer('all outputs', layerBytes * layerIds.length);
    layerIds.forEach((layerId, i) => {
      compute.copy({ buffer: this.of(layerId, numTokens), size: layerBytes }, all, i * layerBytes);
    });
    compute.submit();
    const values = await readF32(this.#device, all, 0, layerBytes * layerIds.length);
    let token = 0;
    return tokensPerRequest.map((count) => {
      const rows = new Float32Array(count * layerIds.length * this.#width);
      for (let t = 0; t < count; t++, token++) {
        layerIds.forEach((_, i) => {
          const from = i * numTokens * this.#width + token * this.#width;
          rows.set(values.subarray(from, from + this.#width), (t * layerIds.length + i) * this.#width);
        });
      }
      return rows;
    });
  }

  destroy(): void {
    for (const buffer of this.#buffers.values()) buffer.destroy();
    this.#buffers.clear();
  }
}
