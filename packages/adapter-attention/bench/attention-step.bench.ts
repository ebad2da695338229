import { type ConsumerStep, StepPages } from '@bufferwise/adapter-kit';
import { defineCacheConfig } from '@bufferwise/core-policy';
import { ComputeContext } from '@bufferwise/gpu-kernels';
import { StorageLayout } from '@bufferwise/scratch-allocator';
import { openGpu } from '@bufferwise-internal/webgpu-node';
import { AttentionConsumer } from '../src/attention-consumer.ts';
import type { AttentionLayer } from '../src/attention-layer.ts';

export interface AttentionStepFigure {
  storage: string;
  numLayers: number;
  numRequests: number;
  /** Entries of a row of the tables. */
  blocks: number;
  dispatches: number;
  /** Kilobytes of the step's one upload. */
  uploadKb: number;
  /** Milliseconds of the host, medians: slot ids to tables (`StepPages.fill`); `begin`; `layer` of all layers. Submission is not in them. */
  fillMs: number;
  beginMs: number;
  layersMs: number;
}

export const columns = {
  dispatches: { unit: 'dispatches', better: 'lower' },
  uploadKb: { unit: 'kB', better: 'lower' },
  fillMs: { unit: 'ms', better: 'lower' },
  beginMs: { unit: 'ms', better: 'lower' },
  layersMs: { unit: 'ms', better: 'lower' },
} satisfies Partial<Record<keyof AttentionStepFigure, object>>;

const NUM_LAYERS = 32;
const TOKENS_PER_BLOCK = 16;
/** Few and small heads: they are work of the device only. */
const HEADS = { numQueryHeads: 2, numKvHeads: 1, headDim: 32 };
const ROUNDS = 9;
/** Enough for the two dispatches of a long decode. */
const CONTEXT = 129;

/** What a decode step of a model of 32 layers costs the host, every second layer with a window and private values. */
export default async function bench(): Promise<AttentionStepFigure[]> {
  const adapter = await openGpu();
  const device = await adapter.requestDevice({ label: 'attention step bench' });
  const figures: AttentionStepFigure[] = [];
  for (const storage of ['f16', 'int8'] as const) {
    for (const [numRequests, blocks] of [
      [1, 64],
      [32, 64],
      [32, 256],
    ]) {
      figures.push(await measure(ComputeContext.of(device), storage, numRequests, blocks));
    }
  }
  device.destroy();
  return figures;
}

async function measure(
  context: ComputeContext,
  storage: 'f16' | 'int8',
  numRequests: number,
  blocks: number,
): Promise<AttentionStepFigure> {
  const layers = Array.from({ length: NUM_LAYERS }, (_, layerId): AttentionLayer => {
    const layer = { layerId, ...HEADS, storage };
    return layerId % 2 === 0 ? layer : { ...layer, slidingWindowSize: 1024, policies: { value: 'private' } };
  });
  const consumer = new AttentionConsumer(context, { layers, tokensPerBlock: TOKENS_PER_BLOCK });
  await consumer.warmUp();
  const layout = StorageLayout.fromConfig(
    defineCacheConfig({ tokensPerBlock: TOKENS_PER_BLOCK, layers: consumer.layers, tiers: [{ tier: 'device', quota: 1 << 30 }] }),
  );
  consumer.bind(layout);
  const pages = new StepPages(layout, layout.lifecycles.bufferGrouping.flat());
  // No pages, so that the device has next to nothing to do: the host has as much.
  const slots = new Int32Array(blocks).fill(-1);
  const source = { basePageIndices: () => slots, ssmBlockBaseIndex: () => 0, scratch: () => null };
  const sources = new Array<typeof source>(numRequests).fill(source);
  // STORAGE. One memory stands for the pools of all numbers: what is in it does not matter here.
  const bufferOf = (size: number) => context.device.createBuffer({ size, usage: 0x80 });
  const memory = { buffer: bufferOf(1 << 26) } as unknown as ReturnType<ConsumerStep['poolMemory']>;
  const scaleMemory = { buffer: bufferOf(1 << 22) } as unknown as ReturnType<ConsumerStep['poolMemory']>;
  const request = { start: CONTEXT - 1, numTokens: 1, matched: 0, reusedGroups: new Set<never>() };
  const step: ConsumerStep = {
    requests: sources.map(() => request),
    pages,
    poolMemory: (_, role) => (role.endsWith('scale') ? scaleMemory : memory),
  };
  const { numQueryHeads, numKvHeads, headDim } = HEADS;
  const keysAt = numQueryHeads * headDim;
  const valuesAt = keysAt + numKvHeads * headDim;
  const strideWords = valuesAt + numKvHeads * headDim;
  const qkv = bufferOf(4 * numRequests * strideWords);
  const output = bufferOf(4 * numRequests * keysAt);
  const rows = {
    queries: { buffer: qkv, offsetWords: 0, strideWords },
    keys: { buffer: qkv, offsetWords: keysAt, strideWords },
    values: { buffer: qkv, offsetWords: valuesAt, strideWords },
    output,
  };

  const times: Record<'fill' | 'begin' | 'layers', number[]> = { fill: [], begin: [], layers: [] };
  let counts = { numDispatches: 0, uploadedBytes: 0 };
  for (let round = -3; round < ROUNDS; round++) {
    const compute = context.step('attention step bench');
    const t0 = performance.now();
    pages.fill(sources, blocks);
    const t1 = performance.now();
    const begun = consumer.begin(step, compute);
    const t2 = performance.now();
    for (let layerId = 0; layerId < NUM_LAYERS; layerId++) begun.layer(layerId, rows);
    const t3 = performance.now();
    counts = compute.submit();
    await context.device.queue.onSubmittedWorkDone();
    if (round < 0) continue;
    times.fill.push(t1 - t0);
    times.begin.push(t2 - t1);
    times.layers.push(t3 - t2);
  }
  consumer.close();
  for (const buffer of [qkv, output]) buffer.destroy();
  for (const { buffer } of [memory, scaleMemory] as unknown as { buffer: GPUBuffer }[]) buffer.destroy();
  const median = (of: number[]) => of.sort((a, b) => a - b)[of.length >> 1];
  return {
    storage,
    numLayers: NUM_LAYERS,
    numRequests,
    blocks,
    dispatches: counts.numDispatches,
    uploadKb: counts.uploadedBytes / 1000,
    fillMs: median(times.fill),
    beginMs: median(times.begin),
    layersMs: median(times.layers),
  };
}
