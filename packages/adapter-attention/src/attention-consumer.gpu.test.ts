import { blocksCross, type ConsumerStep, reusedGroups, StepPages, type StepRequest } from '@bufferwise/adapter-kit';
import { type KvCache, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig } from '@bufferwise/core-policy';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { attentionByHand } from './attention-by-hand-rig.ts';
import { AttentionConsumer } from './attention-consumer.ts';
import type { AttentionLayer } from './attention-layer.ts';
import { AttentionRig, rowsOfSeeds, widthsOf } from './attention-rig.ts';
import { DirtyDevice } from './dirty-device.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const TOKENS_PER_BLOCK = 8;

const device = await requestTestDevice();
const rig = new AttentionRig(device);
const pageDevice = new DirtyDevice(device);
afterAll(() => {
  pageDevice.destroy();
  rig.destroy();
});

/** Requests on a manager of their own; each counts its tokens. */
class Scene {
  readonly consumer: AttentionConsumer;
  readonly manager: KvCacheManager;
  readonly #layers: readonly AttentionLayer[];
  readonly #pages: StepPages;
  readonly #requests: { kv: KvCache; length: number; outputs: number[] }[] = [];

  private constructor(layers: readonly AttentionLayer[], maxRewindLen: number | undefined) {
    this.#layers = layers;
    this.consumer = new AttentionConsumer(rig.context, { layers, tokensPerBlock: TOKENS_PER_BLOCK });
    const config = defineCacheConfig({
      tokensPerBlock: TOKENS_PER_BLOCK,
      layers: this.consumer.layers,
      tiers: [{ tier: 'device', quota: 32 << 20 }],
      ...(maxRewindLen === undefined ? {} : { swaScratchReuse: { maxRewindLen } }),
    });
    this.manager = new KvCacheManager({ config, device: pageDevice, debugChecks: true });
    this.consumer.bind(this.manager.layout, { scratch: maxRewindLen !== undefined });
    this.#pages = new StepPages(this.manager.layout, this.manager.bufferGrouping.flat());
  }

  static async play(
    layers: readonly AttentionLayer[],
    numRequests: number,
    story: (scene: Scene) => Promise<void>,
    maxRewindLen?: number,
  ): Promise<void> {
    const scene = new Scene(layers, maxRewindLen);
    for (let i = 0; i < numRequests; i++) {
      const kv = scene.manager.createKvCache();
      expect(await kv.resume()).toBe(true);
      scene.#requests.push({ kv, length: 0, outputs: [] });
    }
    try {
      await story(scene);
    } finally {
      scene.consumer.close();
      await scene.manager.close({ force: true });
    }
  }

  /** The next tokens of each request, in one step. */
  async step(numTokens: readonly number[]): Promise<void> {
    const running = this.#requests
      .map((request, i) => ({ request, id: i, count: numTokens[i] }))
      .filter(({ count }) => count > 0);
    for (const { request, count } of running) expect(request.kv.resize(request.length + count, request.length)).toBe(true);
    const step = this.stepOf(running.map(({ request, count }) => ({ ...request, count })));
    const outputs = await rig.run(
      this.consumer,
      this.#layers,
      step,
      running.map(({ request, id, count }) => seedsOf(id, request.length, count)),
    );
    running.forEach(({ request, count }, i) => {
      request.outputs.push(...outputs[i]);
      request.length += count;
      request.kv.resize(null, request.length);
    });
  }

  /** A step of requests that have room for it. */
  stepOf(
    running: readonly { kv: KvCache; length: number; count: number; held?: Pick<StepRequest, 'matched' | 'reusedGroups'> }[],
  ): ConsumerStep {
    const blocks = Math.max(...running.map(({ length, count }) => Math.ceil((length + count) / TOKENS_PER_BLOCK)));
    this.#pages.fill(
      running.map(({ kv }) => kv),
      blocks,
    );
    return {
      requests: running.map(({ length, count, held }) => ({
        start: length,
        numTokens: count,
        matched: 0,
        reusedGroups: new Set(),
        ...held,
      })),
      pages: this.#pages,
      poolMemory: (layerId, role) => this.manager.poolMemory(layerId, role),
    };
  }

  /** A step of one new token for each request, not run. */
  nextToken(): ConsumerStep {
    for (const { kv, length } of this.#requests) expect(kv.resize(length + 1, length)).toBe(true);
    return this.stepOf(this.#requests.map((request) => ({ ...request, count: 1 })));
  }

  /** How far the outputs of all requests are from those by hand, at most, layer by layer. */
  errors(): number[] {
    const width = this.#layers.reduce((sum, layer) => sum + widthsOf(layer).output, 0);
    let before = 0;
    return this.#layers.map((layer) => {
      const own = widthsOf(layer).output;
      let most = 0;
      this.#requests.forEach(({ length, outputs }, id) => {
        const expected = attentionByHand(layer, rowsOfSeeds(layer, seedsOf(id, 0, length)));
        expected.forEach((value, i) => {
          const found = outputs[Math.floor(i / own) * width + before + (i % own)];
          most = Math.max(most, Number.isNaN(found) ? Infinity : Math.abs(found - value));
        });
      });
      before += own;
      return most;
    });
  }
}

function expectClose(found: ArrayLike<number>, expected: ArrayLike<number>, begin: number, tolerance: number): void {
  expect(found.length).toBe(expected.length);
  for (let i = begin; i < expected.length; i++) expect(Math.abs(found[i] - expected[i]), `number ${i}`).toBeLessThan(tolerance);
}

function seedsOf(request: number, begin: number, count: number): Uint32Array {
  return Uint32Array.from({ length: count }, (_, i) => 1000 * (request + 1) + begin + i);
}

const grouped = { numQueryHeads: 4, numKvHeads: 2, headDim: 32 };

describe('attention through pages is attention', () => {
  const layers: AttentionLayer[] = [
    { layerId: 3, ...grouped },
    { layerId: 5, ...grouped, slidingWindowSize: 11, numSinkTokens: 3, policies: { value: 'private' } },
    { layerId: 6, ...grouped, valueDim: 48, scale: 0.3, softCap: 2, sinkScores: [0, 1, -1, 2], reusePolicy: 'optional' },
    { layerId: 8, ...grouped, storage: 'f16', slidingWindowSize: 20, tokensPerBlockOverrides: { key: 2, value: 4 } },
    { layerId: 9, ...grouped, storage: 'int8', tokensPerBlockOverrides: { key: 4, key_scale: 4, value: 2 } },
    { layerId: 10, ...grouped, numKvHeads: 4, storage: 'int8', slidingWindowSize: 16 },
  ];
  /** Rounding of f32 sums, of f16 and of int8 pages, for numbers in [-1, 1). */
  const tolerances = [1e-6, 1e-6, 1e-6, 1e-3, 0.01, 0.01];

  test.each([
    ['whole prompts of several lengths', [[7, 1, 30]]],
    [
      'prompts in pieces',
      [
        [3, 16, 5],
        [0, 4, 8],
        [6, 0, 9],
      ],
    ],
    ['one token after the other', Array.from({ length: 19 }, () => [1, 1, 1])],
    [
      'prompts and single tokens in one step',
      [
        [9, 20, 3],
        [1, 1, 12],
        [5, 1, 1],
        [1, 1, 1],
      ],
    ],
    [
      'a long text, decoded',
      [
        [150, 3, 0],
        [1, 1, 0],
        [1, 1, 0],
      ],
    ],
  ])('for %s', async (_, steps) => {
    await Scene.play(layers, 3, async (scene) => {
      for (const step of steps) await scene.step(step);
      scene.errors().forEach((error, i) => {
        expect(error, `layer ${layers[i].layerId}`).toBeLessThan(tolerances[i]);
      });
    });
  });

  test('with scratch in which blocks begin in one slot and end in the next', async () => {
    const windows: AttentionLayer[] = layers.map((layer) => ({ ...layer, slidingWindowSize: 9, numSinkTokens: 3 }));
    const play = async (scene: Scene) => {
      expect(blocksCross(scene.manager.layout, 3, 'key')).toBe(true);
      for (const step of [
        [40, 3, 1],
        [2, 33, 1],
        [1, 1, 1],
        [30, 1, 25],
        [1, 1, 1],
      ])
        await scene.step(step);
      scene.errors().forEach((error, i) => {
        expect(error, `layer ${layers[i].layerId}`).toBeLessThan(tolerances[i]);
      });
    };
    await Scene.play(windows, 3, play, 0);
  });
});

describe('tokens given again', () => {
  test.each([
    ['f32', 1e-6],
    ['f16', 1e-3],
    ['int8', 0.01],
  ] as const)('are written in %s where they are missing, and not where they are held', async (storage, tolerance) => {
    const layer: AttentionLayer = { layerId: 0, ...grouped, storage, policies: { key: 'required', value: 'private' } };
    await Scene.play([layer], 0, async (scene) => {
      const { manager, consumer } = scene;
      const tokens = Array.from({ length: 21 }, (_, i) => i);
      const seeds = seedsOf(0, 0, 21);
      const owner = manager.createKvCache();
      await owner.resume();
      owner.resize(20);
      await rig.run(consumer, [layer], scene.stepOf([{ kv: owner, length: 0, count: 20 }]), [seeds.subarray(0, 20)]);
      owner.commit(tokens.slice(0, 20));
      owner.close();

      // Another one matches inside of a block, and comes with other rows for what is there already. With it in the step: one that is new.
      const reader = manager.createKvCache({ tokens: tokens.slice(0, 20) });
      const matched = reader.numCommittedTokens;
      expect(matched).toBe(20);
      const plan = consumer.planReplay(reader.reuseStatus, matched);
      expect(plan).toEqual({ optionalReuseGroups: [], rebuiltGroups: [], from: 0 });
      await reader.resume();
      reader.resize(21, 20);
      const fresh = manager.createKvCache();
      await fresh.resume();
      fresh.resize(5);
      const held = { matched, reusedGroups: reusedGroups(reader.reuseStatus, plan, matched) };
      const others = [...seedsOf(7, 0, matched), seeds[20]];
      const step = scene.stepOf([
        { kv: fresh, length: 0, count: 5 },
        { kv: reader, length: 0, count: 21, held },
      ]);
      const freshSeeds = seedsOf(3, 0, 5);
      const [outputOfFresh, output] = await rig.run(consumer, [layer], step, [freshSeeds, Uint32Array.from(others)]);
      expectClose(outputOfFresh, attentionByHand(layer, rowsOfSeeds(layer, freshSeeds)), 0, tolerance);
      const { queries, values } = rowsOfSeeds(layer, Uint32Array.from(others));
      const { keys } = rowsOfSeeds(layer, seeds);
      expectClose(output, attentionByHand(layer, { queries, keys, values }), matched * 128, tolerance);
    });
  });
});

describe('a step', () => {
  const int8: AttentionLayer = { layerId: 0, ...grouped, storage: 'int8' };

  test('is one upload, in which numbers share the tables of their scales', async () => {
    await Scene.play([int8, { ...int8, layerId: 1 }], 2, async (scene) => {
      await scene.step([3, 5]);
      const compute = rig.context.step('counted');
      const upload = vi.spyOn(compute, 'upload');
      scene.consumer.begin(scene.nextToken(), compute);
      // Places, query starts, context lengths; keys and values of two layers.
      expect(upload).toHaveBeenCalledTimes(3 + 4);
      compute.submit();
    });
  });

  test('of two layers takes three dispatches each', async () => {
    await Scene.play([int8, { layerId: 1, ...grouped }], 2, async (scene) => {
      await scene.consumer.warmUp();
      const compute = rig.context.step('counted');
      const output = device.createBuffer({ size: 4 * 2 * 128, usage: 0x80 });
      const rows = { buffer: compute.upload(new Float32Array(2 * 128)), offsetWords: 0, strideWords: 128 };
      const begun = scene.consumer.begin(scene.nextToken(), compute);
      for (const layerId of [0, 1]) begun.layer(layerId, { queries: rows, keys: rows, values: rows, output });
      expect(compute.submit()).toMatchObject({ numDispatches: 6, numCopies: 0 });
      output.destroy();
    });
  });
});
