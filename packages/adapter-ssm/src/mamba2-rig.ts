import type { ConsumerAdapter, ConsumerStep } from '@bufferwise/adapter-kit';
import type { ConsumerHarness } from '@bufferwise/adapter-kit/conformance/consumer';
import type { PoolSpec } from '@bufferwise/cache-manager';
import { ComputeContext, mamba2Layout, packHeadParams, WebGpuPageDevice, type WebGpuPoolMemory } from '@bufferwise/gpu-kernels';
import { readF32, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { Mamba2Consumer, type Mamba2Work } from './mamba2-consumer.ts';
import type { Mamba2Layer } from './mamba2-layer.ts';
import type { Mamba2Rows } from './mamba2-step.ts';

/** Relative to the larger of a value and 1: replay adds the same numbers up in another order than a scan. */
export const TOLERANCE = 1e-4;

/** Small enough for a software device to run thousands of steps. */
export const TINY = { numHeads: 2, headDim: 4, stateSize: 16, numGroups: 1, convWidth: 4 } as const;

/** Memory as others left it: every byte 0xff, which is NaN in every word. */
export class DirtyGpu extends WebGpuPageDevice {
  readonly #device: GPUDevice;

  constructor(device: GPUDevice) {
    super(device);
    this.#device = device;
  }

  override createPool(spec: PoolSpec): WebGpuPoolMemory {
    const pool = super.createPool(spec);
    this.#device.queue.writeBuffer(pool.buffer, 0, new Uint8Array(pool.bytes).fill(0xff));
    return pool;
  }
}

/** All that the conformance suite needs, with a mix for each list of layers. */
export function mamba2Harness(
  device: GPUDevice,
  named: Readonly<Record<string, readonly Mamba2Layer[]>>,
): ConsumerHarness<Mamba2Work> {
  const context = ComputeContext.of(device);
  const models = new Map<ConsumerAdapter<Mamba2Work>, StackedModel>();
  return {
    mixes: Object.entries(named).map(([name, layers]) => ({ name, layers: new Mamba2Consumer(context, { layers }).layers })),
    tolerance: TOLERANCE,
    create({ name }) {
      const layers = named[name];
      const consumer = new Mamba2Consumer(context, { layers });
      models.set(consumer, new StackedModel(device, layers));
      return consumer;
    },
    destroy(consumer) {
      consumer.close();
      models.get(consumer)?.destroy();
      models.delete(consumer);
    },
    run: (consumer, step, seeds) => (models.get(consumer) as StackedModel).run(consumer, step, seeds),
    device: () => new DirtyGpu(device),
  };
}

/**
 * Layers on top of each other: inputs come from seeds, and x of each layer from what the one below puts out. So a layer that is wrong for
 * tokens that are given again spoils what is rebuilt above it.
 */
export class StackedModel {
  readonly #context: ComputeContext;
  readonly #layers: readonly Mamba2Layer[];
  readonly #weights: readonly Pick<Mamba2Rows, 'convWeight' | 'convBias' | 'headParams'>[];
  readonly #weightBuffers: GPUBuffer[] = [];
  #activations: Activations | undefined;

  constructor(device: GPUDevice, layers: readonly Mamba2Layer[]) {
    this.#context = ComputeContext.of(device);
    this.#layers = layers;
    const words = (content: Float32Array) => {
      const buffer = storageBuffer(device, content);
      this.#weightBuffers.push(buffer);
      return { buffer };
    };
    this.#weights = layers.map((layer, i) => {
      const random = randomNumbers(i + 1);
      const make = (length: number, scale: number, middle = 0) => Float32Array.from({ length }, () => middle + scale * random());
      const { numChannels } = mamba2Layout(layer);
      const { numHeads } = layer;
      return {
        convWeight: words(make(numChannels * layer.convWidth, 1)),
        convBias: words(make(numChannels, 0.5)),
        headParams: words(
          packHeadParams({ dtBias: make(numHeads, 0.5, -1), aLog: make(numHeads, 0.5, -1), dSkip: make(numHeads, 0.5, 1) }),
        ),
      };
    });
  }

  /** For each request what all layers put out, token after token. */
  async run(consumer: ConsumerAdapter<Mamba2Work>, step: ConsumerStep, seeds: readonly Uint32Array[]): Promise<Float32Array[]> {
    const { device } = this.#context;
    const tokens = seeds.flatMap((seed) => [...seed]);
    const { rows, outputs } = this.#activationsFor(tokens.length);
    // What nobody writes is to be seen.
    device.queue.writeBuffer(outputs, 0, new Float32Array(outputs.size / 4).fill(Number.NaN));
    this.#layers.forEach((layer, i) => {
      device.queue.writeBuffer(rows[i].projection.buffer as GPUBuffer, 0, inputsOf(layer, i, tokens));
    });
    const compute = this.#context.step('stacked model');
    consumer.record(step, {
      compute,
      rows: (layerId) => {
        const at = this.#layers.findIndex((layer) => layer.layerId === layerId);
        if (at > 0) this.#feed(compute, rows[at - 1], rows[at], this.#layers[at], tokens.length);
        return rows[at];
      },
    });
    compute.submit();
    const values = await readF32(device, outputs);
    let first = 0;
    return seeds.map(({ length }) => {
      const own: number[] = [];
      for (let t = first; t < first + length; t++)
        for (const { y } of rows)
          own.push(...values.subarray(y.offsetWords + t * y.strideWords, y.offsetWords + (t + 1) * y.strideWords));
      first += length;
      return Float32Array.from(own);
    });
  }

  destroy(): void {
    for (const buffer of [...this.#weightBuffers, ...(this.#activations?.buffers ?? [])]) buffer.destroy();
  }

  /** What a layer puts out becomes x of the next, which is as wide. */
  #feed(compute: Mamba2Work['compute'], below: Mamba2Rows, above: Mamba2Rows, layer: Mamba2Layer, numTokens: number): void {
    const { innerSize, projection } = mamba2Layout(layer);
    for (let t = 0; t < numTokens; t++) {
      const { y } = below;
      const source = { buffer: y.buffer as GPUBuffer, offset: 4 * (y.offsetWords + t * innerSize), size: 4 * innerSize };
      compute.copy(source, above.projection.buffer as GPUBuffer, 4 * (t * projection.rowWords + projection.xBC));
    }
  }

  #activationsFor(numTokens: number): Activations {
    if (this.#activations && this.#activations.numTokens >= numTokens) return this.#activations;
    for (const buffer of this.#activations?.buffers ?? []) buffer.destroy();
    const { device } = this.#context;
    const sizes = this.#layers.map(mamba2Layout);
    const outputs = storageBuffer(device, 4 * numTokens * sizes.reduce((sum, { innerSize }) => sum + innerSize, 0));
    const buffers = [outputs];
    let offsetWords = 0;
    const rows = sizes.map(({ numChannels, innerSize, projection }, i): Mamba2Rows => {
      const inputs = storageBuffer(device, 4 * numTokens * projection.rowWords);
      const xBC = storageBuffer(device, 4 * numTokens * numChannels);
      buffers.push(inputs, xBC);
      const y = { buffer: outputs, offsetWords, strideWords: innerSize };
      offsetWords += numTokens * innerSize;
      return {
        ...this.#weights[i],
        projection: { buffer: inputs, offsetWords: 0, strideWords: projection.rowWords },
        xBC: { buffer: xBC, offsetWords: 0, strideWords: numChannels },
        y,
      };
    });
    this.#activations = { numTokens, rows, outputs, buffers };
    return this.#activations;
  }
}

interface Activations {
  /** Tokens that there is room for. */
  readonly numTokens: number;
  readonly rows: readonly Mamba2Rows[];
  /** What all layers put out. */
  readonly outputs: GPUBuffer;
  readonly buffers: readonly GPUBuffer[];
}

function inputsOf(layer: Mamba2Layer, at: number, tokens: readonly number[]): Float32Array<ArrayBuffer> {
  const { rowWords } = mamba2Layout(layer).projection;
  const inputs = new Float32Array(tokens.length * rowWords);
  for (const [t, token] of tokens.entries()) {
    const random = randomNumbers(token ^ Math.imul(at + 1, 0x9e3779b9));
    for (let w = 0; w < rowWords; w++) inputs[t * rowWords + w] = random();
  }
  return inputs;
}

/** Numbers in [-1, 1) that are the same in every run. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  const next = () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) >>> 0;
    return (state ^ (state >>> 13)) >>> 0;
  };
  next();
  return () => next() / 2 ** 31 - 1;
}
