import { reusedGroups } from '@bufferwise/adapter-kit';
import { type KvCache, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';
import { WebGpuPageDevice } from '@bufferwise/gpu-kernels';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, it, vi } from 'vitest';
import { cacheLayers, type MemoryOptions } from '../description/cache-layers.ts';
import { describeTensors } from '../description/describe-tensors.ts';
import type { LayerDescription, ModelDescription } from '../description/model-description.ts';
import { dequantiseAll, readGgufModel } from '../gguf/gguf-model.ts';
import { type OracleModel, oracleAnswers, oracleFile } from '../gguf/testing/oracle-models.ts';
import type { EngineModel } from '../model/engine-model.ts';
import { ModelError } from '../model/model-error.ts';
import { halfTensor, RandomValues, singleTensor } from '../model/testing/random-values.ts';
import { ReferenceModel } from '../reference/reference-model.ts';
import { GpuModel, type SequenceChunk } from './gpu-model.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 120_000 });

const device = await requestTestDevice();
const TOKENS_PER_BLOCK = 8;
const TOLERANCE = 1e-3;

type Model = Pick<EngineModel, 'description' | 'tensors'>;

/** A model on the device, its manager, and the same model in plain TypeScript. */
async function stage(
  of: OracleModel | Model,
  play: (scene: {
    gpu: GpuModel;
    manager: KvCacheManager;
    reference: (tokens: readonly number[]) => Float32Array[];
  }) => Promise<void>,
  { memory = {}, policy }: { memory?: MemoryOptions; policy?: (layer: LayerConfig) => LayerConfig } = {},
): Promise<void> {
  const model = typeof of === 'string' ? readGgufModel(oracleFile(of)) : { ...of, tokenizer: undefined as never };
  const layers = cacheLayers(model.description, { tokensPerBlock: TOKENS_PER_BLOCK, ...memory });
  const config = defineCacheConfig({
    tokensPerBlock: TOKENS_PER_BLOCK,
    layers: policy ? layers.map(policy) : layers,
    tiers: [{ tier: 'device', quota: 32 << 20 }],
  });
  const pageDevice = new WebGpuPageDevice(device);
  const manager = new KvCacheManager({ config, device: pageDevice, debugChecks: true });
  await manager.ready();
  const gpu = await GpuModel.create({ model, device, manager, maxTokens: 64, memory });
  const plain = new ReferenceModel(model.description, dequantiseAll(model));
  const reference = (tokens: readonly number[]) => {
    const state = plain.createState();
    return tokens.map((token) => plain.forward([token], state));
  };
  try {
    await play({ gpu, manager, reference });
  } finally {
    gpu.destroy();
    await manager.close({ force: true });
    pageDevice.destroy();
  }
}

/** A chunk of a request that has made room for it. */
function chunk(cache: KvCache, tokens: readonly number[], start: number, more: Partial<SequenceChunk> = {}): SequenceChunk {
  expect(cache.resize(Math.max(start + tokens.length, cache.capacity), Math.max(start, cache.historyLength))).toBe(true);
  return { cache, tokens: Uint32Array.from(tokens), start, ...more };
}

async function opened(manager: KvCacheManager): Promise<KvCache> {
  const cache = manager.createKvCache();
  await cache.resume();
  return cache;
}

function expectClose(found: readonly Float32Array[], expected: readonly Float32Array[]): void {
  expect(found).toHaveLength(expected.length);
  found.forEach((row, t) => {
    const worst = row.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[t][i])), 0);
    expect(worst, `largest difference of a logit, row ${t}`).toBeLessThan(TOLERANCE);
  });
}

const [, { prompt: A }, { prompt: B }] = oracleAnswers('granitehybrid-101');

describe('a step', () => {
  it('gives logits of all tokens, of the last, or none, as each request asks', async () => {
    await stage('granitehybrid-101', async ({ gpu, manager, reference }) => {
      const [all, last, none] = await Promise.all([opened(manager), opened(manager), opened(manager)]);
      const [ofAll, ofLast, ofNone] = await gpu.step([
        chunk(all, A.slice(0, 9), 0, { logits: 'all' }),
        chunk(last, B.slice(0, 20), 0),
        chunk(none, A.slice(0, 5), 0, { logits: 'none' }),
      ]);
      expectClose(ofAll, reference(A.slice(0, 9)));
      expectClose(ofLast, reference(B.slice(0, 20)).slice(-1));
      expect(ofNone).toEqual([]);
      const [rest] = await gpu.step([chunk(none, A.slice(5, 12), 5, { logits: 'all' })]);
      expectClose(rest, reference(A.slice(0, 12)).slice(5));
      expect(await gpu.step([chunk(last, B.slice(20, 22), 20, { logits: 'none' })])).toEqual([[]]);
    });
  });

  it('takes drafts back where states have rings, and goes on as if they had not been', async () => {
    const memory: MemoryOptions = { replay: { rows: 16, maxTokens: 4 } };
    const play: Parameters<typeof stage>[1] = async ({ gpu, manager, reference }) => {
      const cache = await opened(manager);
      const expected = reference(A);
      await gpu.step([chunk(cache, A.slice(0, 10), 0, { logits: 'none' })]);
      let length = 10;
      // In turn all, some and none of three drafts are right.
      for (const numRight of [3, 1, 0, 2, 3, 0]) {
        const drafts = A.slice(length, length + 4).map((token, i) => (i <= numRight ? token : (token + 1) % 320));
        const [rows] = await gpu.step([chunk(cache, drafts, length, { logits: 'all', snapshot: false })]);
        expectClose(rows.slice(0, numRight + 1), expected.slice(length, length + numRight + 1));
        length += numRight + 1;
      }
    };
    await stage('granitehybrid-101', play, { memory });
  });

  it('fills optional groups that were not reused from tokens that it is given again', async () => {
    const policy = (layer: LayerConfig): LayerConfig => (layer.type === 'ssm' ? { ...layer, reusePolicy: 'optional' } : layer);
    const play: Parameters<typeof stage>[1] = async ({ gpu, manager, reference }) => {
      const first = await opened(manager);
      await gpu.step([chunk(first, B.slice(0, 48), 0, { logits: 'none' })]);
      first.commit(B.slice(0, 48));
      first.close();
      // Nobody kept the state where the two part.
      const prompt = [...B.slice(0, 40), ...A.slice(0, 20)];
      const cache = manager.createKvCache({ tokens: prompt });
      const matched = cache.numCommittedTokens;
      expect(matched).toBe(40);
      const plan = gpu.planReplay(cache.reuseStatus, matched);
      expect(plan.from).toBe(0);
      const held = reusedGroups(cache.reuseStatus, plan, matched);
      expect(held.size).toBe(1);
      await cache.resume(plan);
      const [rows] = await gpu.step([chunk(cache, prompt, 0, { logits: 'all', matched, reusedGroups: held })]);
      expectClose(rows, reference(prompt));
    };
    await stage('granitehybrid-101', play, { policy });
  });
});

/** A model of two layers that has whatever the oracle models have not. */
const EVERYTHING: ModelDescription = {
  architecture: 'granitehybrid',
  vocabSize: 50,
  width: 24,
  normEps: 1e-5,
  embeddingScale: 3,
  residualScale: 0.5,
  logitScale: 0.25,
  tiedOutput: false,
  layers: [
    {
      mixer: {
        kind: 'attention',
        numHeads: 6,
        numKvHeads: 2,
        headDim: 12,
        windowSize: 7,
        numSinkTokens: 2,
        scale: 0.4,
        rotary: { pairs: 'interleaved', base: 100, dimensions: 8, positionScale: 2, hasFactors: true },
        queryKeyNorm: 'row',
        hasInputBias: true,
        hasOutputBias: true,
      },
      feedForward: { hidden: 20, activation: 'gelu', hasBias: true },
      normBefore: true,
      normAfter: true,
    },
    {
      // A row of the projection has 1 value more than fours.
      mixer: { kind: 'mamba2', inner: 40, numHeads: 5, headDim: 8, numGroups: 5, stateSize: 6, convWidth: 3 },
      normBefore: false,
      normAfter: false,
    },
    {
      mixer: {
        kind: 'attention',
        numHeads: 2,
        numKvHeads: 2,
        headDim: 16,
        scale: 0.3,
        queryKeyNorm: 'head',
        hasInputBias: false,
        hasOutputBias: true,
      },
      feedForward: { hidden: 8, activation: 'silu', hasBias: true },
      normBefore: false,
      normAfter: false,
    },
  ],
};

/** Random weights, every other matrix in F16. */
function randomModel(description: ModelDescription): Model {
  const values = new RandomValues(12);
  const tensors = Array.from(describeTensors(description), ([name, shape], i) => {
    const numElements = shape.reduce((product, size) => product * size, 1);
    if (shape.length === 2 && i % 2 === 0 && !name.includes('ssm_')) return halfTensor(name, values.f16(numElements), shape);
    const numbers = values.f32(numElements);
    if (name.endsWith('ssm_a'))
      return singleTensor(
        name,
        numbers.map((value) => -0.1 - Math.abs(value)),
        shape,
      );
    if (name === 'rope_freqs.weight')
      return singleTensor(
        name,
        numbers.map((value) => 2 + value),
        shape,
      );
    return singleTensor(name, numbers, shape);
  });
  return { description, tensors: new Map(tensors.map((tensor) => [tensor.name, tensor])) };
}

it('computes whatever can be described as plain TypeScript does', async () => {
  const tokens = Array.from({ length: 40 }, (_, i) => (i * 17) % 50);
  await stage(randomModel(EVERYTHING), async ({ gpu, manager, reference }) => {
    const cache = await opened(manager);
    const expected = reference(tokens);
    const [first] = await gpu.step([chunk(cache, tokens.slice(0, 33), 0, { logits: 'all' })]);
    expectClose(first, expected.slice(0, 33));
    for (let at = 33; at < 40; at++) {
      const [rows] = await gpu.step([chunk(cache, tokens.slice(at, at + 1), at)]);
      expectClose(rows, expected.slice(at, at + 1));
    }
  });
});

it('keeps keys and values in 16 bits where it is told to, and answers much the same', async () => {
  const play: Parameters<typeof stage>[1] = async ({ gpu, manager, reference }) => {
    const cache = await opened(manager);
    await gpu.step([chunk(cache, A.slice(0, 20), 0, { logits: 'none' })]);
    const [[found]] = await gpu.step([chunk(cache, A.slice(20, 30), 20)]);
    const [expected] = reference(A.slice(0, 30)).slice(-1);
    const worst = found.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i])), 0);
    expect(worst).toBeGreaterThan(0);
    expect(worst).toBeLessThan(0.05);
  };
  await stage('llama-103', play, { memory: { storage: 'f16' } });
});

it('a model without kernels is refused before anything is allocated', async () => {
  const model = readGgufModel(oracleFile('mamba2-101'));
  const { layers } = model.description;
  const wide = { ...model, description: { ...model.description, width: 65, layers: layers.map(widened) } };
  const refused = GpuModel.create({ model: wide, device, manager: undefined as never, maxTokens: 8 });
  await expect(refused).rejects.toThrow(ModelError);
  await expect(refused).rejects.toMatchObject({ code: 'model-config', faults: { length: 4 } });
});

function widened(layer: LayerDescription): LayerDescription {
  return layer.mixer.kind === 'mamba2' ? { ...layer, mixer: { ...layer.mixer, convWidth: 5 } } : layer;
}
