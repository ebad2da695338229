import type { ConsumerStep } from '@bufferwise/adapter-kit';
import { ComputeContext, Readback } from '@bufferwise/gpu-kernels';
import type { AttentionConsumer } from './attention-consumer.ts';
import type { AttentionLayer } from './attention-layer.ts';

/** Rows of one layer as plain numbers: `[numTokens, width]`. */
export interface PlainRows {
  readonly queries: Float32Array;
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

/** Numbers of a row of each kind. */
export function widthsOf({ numQueryHeads, numKvHeads, headDim, valueDim = headDim }: AttentionLayer) {
  return {
    queries: numQueryHeads * headDim,
    keys: numKvHeads * headDim,
    values: numKvHeads * valueDim,
    output: numQueryHeads * valueDim,
  };
}

/** Numbers in [-1, 1) that a seed and a layer stand for, one row for each seed. */
export function rowsOfSeeds(layer: AttentionLayer, seeds: Uint32Array): PlainRows {
  const { queries, keys, values } = widthsOf(layer);
  const rows = (width: number, part: number) => {
    const numbers = new Float32Array(seeds.length * width);
    seeds.forEach((seed, row) => {
      let state = Math.imul(seed ^ (0x9e3779b9 * (3 * layer.layerId + part + 1)), 0x85ebca6b);
      for (let i = 0; i < width; i++) {
        state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x7f4a7c15;
        state ^= state >>> 13;
        numbers[row * width + i] = (state >>> 8) / 2 ** 23 - 1;
      }
    });
    return numbers;
  };
  return { queries: rows(queries, 0), keys: rows(keys, 1), values: rows(values, 2) };
}

/** Runs steps of a consumer on a device, with rows made of seeds, and reads what comes out. */
export class AttentionRig {
  readonly device: GPUDevice;
  readonly context: ComputeContext;
  readonly #readback: Readback;
  readonly #outputs = new Map<number, GPUBuffer>();

  constructor(device: GPUDevice) {
    this.device = device;
    this.context = ComputeContext.of(device);
    this.#readback = new Readback(device, 2 ** 20);
  }

  /** @returns for each request `[numTokens, outputs of all layers]` */
  async run(
    consumer: AttentionConsumer,
    layers: readonly AttentionLayer[],
    step: ConsumerStep,
    seeds: readonly Uint32Array[],
  ): Promise<Float32Array[]> {
    const all = Uint32Array.from(seeds.flatMap((own) => [...own]));
    const compute = this.context.step('attention test');
    consumer.record(step, {
      compute,
      rows: (layerId) => {
        const layer = layers.find((one) => one.layerId === layerId) as AttentionLayer;
        const widths = widthsOf(layer);
        // As an engine has them: queries, keys and values of a token side by side.
        const strideWords = widths.queries + widths.keys + widths.values;
        const plain = rowsOfSeeds(layer, all);
        const numbers = new Float32Array(all.length * strideWords);
        for (let row = 0; row < all.length; row++) {
          let at = row * strideWords;
          for (const part of ['queries', 'keys', 'values'] as const) {
            numbers.set(plain[part].subarray(row * widths[part], (row + 1) * widths[part]), at);
            at += widths[part];
          }
        }
        const buffer = compute.upload(numbers);
        return {
          queries: { buffer, offsetWords: 0, strideWords },
          keys: { buffer, offsetWords: widths.queries, strideWords },
          values: { buffer, offsetWords: widths.queries + widths.keys, strideWords },
          output: this.#output(layerId, 4 * all.length * widths.output),
        };
      },
    });
    compute.submit();
    return this.#read(layers, seeds);
  }

  destroy(): void {
    for (const buffer of this.#outputs.values()) buffer.destroy();
    this.#readback.destroy();
  }

  async #read(layers: readonly AttentionLayer[], seeds: readonly Uint32Array[]): Promise<Float32Array[]> {
    const numTokens = seeds.reduce((sum, { length }) => sum + length, 0);
    const ranges = layers.map((layer) => {
      const size = 4 * numTokens * widthsOf(layer).output;
      return { buffer: this.#output(layer.layerId, size), offset: 0, size };
    });
    const found = new Float32Array(ranges.reduce((sum, { size }) => sum + size / 4, 0));
    await this.#readback.read('attention outputs', ranges, new Uint8Array(found.buffer));
    let first = 0;
    return seeds.map(({ length }) => {
      const rows: number[] = [];
      for (let token = first; token < first + length; token++) {
        let begin = 0;
        for (const layer of layers) {
          const { output } = widthsOf(layer);
          for (let i = 0; i < output; i++) rows.push(found[begin + token * output + i]);
          begin += numTokens * output;
        }
      }
      first += length;
      return Float32Array.from(rows);
    });
  }

  #output(layerId: number, bytes: number): GPUBuffer {
    const known = this.#outputs.get(layerId);
    if (known && known.size >= bytes) return known;
    known?.destroy();
    // STORAGE, COPY_SRC
    const buffer = this.device.createBuffer({ label: `output of layer ${layerId}`, size: 2 * bytes, usage: 0x80 | 0x04 });
    this.#outputs.set(layerId, buffer);
    return buffer;
  }
}
