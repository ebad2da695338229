import { AdapterError, type ConsumerStep, StepPages } from '@bufferwise/adapter-kit';
import type { GroupReuseStatus } from '@bufferwise/cache-manager';
import { defineCacheConfig, type LayerConfig, type LayerGroupId, type ReusePolicy } from '@bufferwise/core-policy';
import { ComputeContext } from '@bufferwise/gpu-kernels';
import { StorageLayout } from '@bufferwise/scratch-allocator';
import { describe, expect, test, vi } from 'vitest';
import { AttentionConsumer } from './attention-consumer.ts';
import type { AttentionLayer } from './attention-layer.ts';
import type { AttentionRows } from './attention-step.ts';

/** Enough of a device for everything but running. */
const device = {
  limits: {
    minUniformBufferOffsetAlignment: 256,
    minStorageBufferOffsetAlignment: 256,
    maxStorageBufferBindingSize: 2 ** 27,
    maxComputeWorkgroupsPerDimension: 65535,
  },
  features: new Set(),
  adapterInfo: { isFallbackAdapter: true, subgroupMinSize: 4 },
} as unknown as GPUDevice;
const context = ComputeContext.of(device);

const TOKENS_PER_BLOCK = 4;
const shape = { numQueryHeads: 2, numKvHeads: 1, headDim: 32 };
const layer: AttentionLayer = { layerId: 0, ...shape };

const consumerOf = (...layers: AttentionLayer[]) => new AttentionConsumer(context, { layers, tokensPerBlock: TOKENS_PER_BLOCK });

function layoutOf(layers: readonly LayerConfig[], tokensPerBlock = TOKENS_PER_BLOCK): StorageLayout {
  return StorageLayout.fromConfig(defineCacheConfig({ tokensPerBlock, layers, tiers: [{ tier: 'device', quota: 1 << 26 }] }));
}

function bound(...layers: AttentionLayer[]): { consumer: AttentionConsumer; layout: StorageLayout } {
  const consumer = consumerOf(...layers);
  const layout = layoutOf(consumer.layers);
  consumer.bind(layout);
  return { consumer, layout };
}

const refusal = (code: string, message: RegExp) =>
  expect.objectContaining({ name: 'AdapterError', code, message: expect.stringMatching(message) });

describe('a consumer is not made', () => {
  test('with a layer twice', () => {
    expect(() => consumerOf(layer, { ...layer, layerId: 1 }, layer)).toThrow(refusal('layout-refused', /layer 0 twice/));
  });

  test('of a shape that the kernels do not serve', () => {
    expect(() => consumerOf({ ...layer, headDim: 4 })).toThrow(
      expect.objectContaining({ name: 'KernelError', code: 'kernel-dispatch' }),
    );
  });
});

describe('a layout is refused', () => {
  const refuses = (layers: readonly LayerConfig[], message: RegExp, own = layer, tokensPerBlock = TOKENS_PER_BLOCK) => {
    const consumer = consumerOf(own);
    expect(() => consumer.bind(layoutOf(layers, tokensPerBlock))).toThrow(refusal('layout-refused', message));
    // Nothing has changed: it still knows no layout.
    expect(() => consumer.planReplay([], 0)).toThrow(refusal('step-refused', /bind/));
    consumer.bind(layoutOf(consumer.layers));
  };
  const withBuffers = (more: object, own = layer): LayerConfig[] =>
    consumerOf(own).layers.map((config) => ({ ...config, buffers: config.buffers.map((buffer) => ({ ...buffer, ...more })) }));

  test('with blocks of another length, though pages have the same size', () => {
    const twice = consumerOf(layer).layers;
    refuses(twice, /1 pages in a block of 8 tokens, and this consumer has pages of 4/, layer, 8);
    refuses(withBuffers({ tokensPerBlockOverride: 2 }), /2 pages in a block of 4/);
    refuses(
      withBuffers({ tokensPerBlockOverride: undefined }, { ...layer, tokensPerBlockOverrides: { key: 2, value: 2 } }),
      /1 pages in a block of 4 tokens, and this consumer has pages of 2/,
      { ...layer, tokensPerBlockOverrides: { key: 2, value: 2 } },
    );
  });

  test('that lets go of tokens too early', () => {
    const windowed: AttentionLayer = { ...layer, slidingWindowSize: 8, numSinkTokens: 5 };
    const kept = (slidingWindowSize: number | undefined, numSinkTokens: number) =>
      consumerOf(layer).layers.map((config) => ({ ...config, slidingWindowSize, numSinkTokens })) as LayerConfig[];
    refuses(kept(8, 5), /keeps the last 8 tokens and 2 first blocks, which is less/);
    refuses(kept(7, 5), /less than the layer reads/, windowed);
    refuses(kept(8, 4), /less than the layer reads/, windowed);
    for (const enough of [kept(8, 5), kept(9, 8), kept(undefined, 0)]) consumerOf(windowed).bind(layoutOf(enough));
  });

  test('with numbers apart from their scales', () => {
    const int8: AttentionLayer = { ...layer, storage: 'int8' };
    const apart = consumerOf(int8).layers.map((config) => ({
      ...config,
      buffers: config.buffers.map((buffer) => ({
        ...buffer,
        reusePolicy: (buffer.role === 'value_scale' ? 'private' : 'required') as ReusePolicy,
      })),
    }));
    refuses(apart, /buffer value of layer 0 is in another group than its scales/, int8);
  });

  test('that has recurrent state under the id of a layer', () => {
    const state = consumerOf(layer).layers.map(({ layerId, buffers }) => ({ type: 'ssm' as const, layerId, buffers }));
    refuses(state, /recurrent state/);
  });
});

describe('a replay', () => {
  const windowed: AttentionLayer = { ...layer, layerId: 1, slidingWindowSize: 6 };
  const status = (groupId: LayerGroupId, policy: ReusePolicy, complete: boolean): GroupReuseStatus => ({
    groupId,
    policy,
    complete,
    endpoint: complete ? 21 : 0,
    coverage: [],
  });
  const planOf = (policies: AttentionLayer['policies'], complete: boolean, matched = 21) => {
    const { consumer, layout } = bound({ ...windowed, policies });
    const all = layout.lifecycles.bufferGrouping.map((_, id) =>
      status(id as LayerGroupId, layout.lifecycles.get(id as LayerGroupId).policy, complete),
    );
    // Groups of somebody else.
    const others = [status(7 as LayerGroupId, 'private', false), status(8 as LayerGroupId, 'optional', true)];
    return consumer.planReplay([...all, ...others], matched);
  };

  test('is not needed where all is there', () => {
    expect(planOf({}, true)).toEqual({ optionalReuseGroups: [], rebuiltGroups: [], from: 21 });
    expect(planOf({ value: 'optional' }, true)).toEqual({ optionalReuseGroups: [1], rebuiltGroups: [], from: 21 });
  });

  test('begins with the first block that a later token reads', () => {
    // Token 21 sees 16 and those behind it.
    expect(planOf({ value: 'private' }, false)).toEqual({ optionalReuseGroups: [], rebuiltGroups: [], from: 16 });
    expect(planOf({ value: 'optional' }, false)).toEqual({ optionalReuseGroups: [], rebuiltGroups: [1], from: 16 });
    // Token 20 sees 15.
    expect(planOf({ value: 'private' }, false, 20).from).toBe(12);
  });

  test('begins at 0 without a window, and without a match', () => {
    const { consumer } = bound({ ...layer, policies: { value: 'private' } });
    expect(consumer.planReplay([status(1 as LayerGroupId, 'private', false)], 21).from).toBe(0);
    expect(planOf({ value: 'optional' }, false, 0)).toEqual({ optionalReuseGroups: [], rebuiltGroups: [], from: 0 });
  });
});

const gpuMemory = { buffer: { label: 'pool', size: 1 << 20, usage: 0x80 } } as unknown as ReturnType<ConsumerStep['poolMemory']>;
function stepOf(layout: StorageLayout, more: Partial<ConsumerStep> = {}, buffers = layout.lifecycles.bufferGrouping.flat()) {
  const pages = new StepPages(layout, buffers);
  pages.fill([{ basePageIndices: () => Int32Array.of(0), ssmBlockBaseIndex: () => 0, scratch: () => null }], 1);
  const requests = [{ start: 0, numTokens: 3, matched: 0, reusedGroups: new Set<LayerGroupId>() }];
  return { requests, pages, poolMemory: () => gpuMemory, ...more } satisfies ConsumerStep;
}

describe('a step is refused, and nothing of it is uploaded,', () => {
  function refuses(consumer: AttentionConsumer, step: ConsumerStep, error: unknown): void {
    const compute = context.step('refused');
    const upload = vi.spyOn(compute, 'upload');
    expect(() => consumer.begin(step, compute)).toThrow(error as Error);
    expect(upload).not.toHaveBeenCalled();
  }

  test('before bind, after close', () => {
    const { consumer, layout } = bound(layer);
    refuses(consumerOf(layer), stepOf(layout), refusal('step-refused', /call `bind` first/));
    consumer.close();
    consumer.close();
    refuses(consumer, stepOf(layout), refusal('plugin-closed', /make a new one/));
    expect(() => consumer.bind(layout)).toThrow(AdapterError);
  });

  test('with tables of another layout, of other requests, or without those of a buffer', () => {
    const { consumer, layout } = bound(layer);
    refuses(consumer, stepOf(layoutOf(consumer.layers)), refusal('step-refused', /another layout/));
    refuses(consumer, stepOf(layout, { requests: [] }), refusal('step-refused', /0 requests and tables for 1/));
    const keys = layout.lifecycles.bufferGrouping.flat().slice(0, 1);
    refuses(consumer, stepOf(layout, {}, keys), expect.objectContaining({ name: 'StateError', code: 'unknown-table-buffer' }));
  });

  test('with pages in host memory', () => {
    const { consumer, layout } = bound(layer);
    const poolMemory = () => ({ bytes: new Uint8Array(4) }) as unknown as ReturnType<ConsumerStep['poolMemory']>;
    refuses(consumer, stepOf(layout, { poolMemory }), refusal('step-refused', /WebGpuPageDevice/));
  });
});

describe('a layer is refused, and nothing of it is recorded,', () => {
  test.each<[string, (right: AttentionRows) => Partial<AttentionRows>, RegExp]>([
    ['queries that are too short', ({ queries }) => ({ queries: { ...queries, offsetWords: 4 } }), /queries of layer 0 reaches/],
    ['keys that are too short', ({ keys }) => ({ keys: { ...keys, strideWords: 256 } }), /keys of layer 0 reaches/],
    ['values that overlap', ({ values }) => ({ values: { ...values, strideWords: 28 } }), /28 words apart, but a row has 32/],
    ['values off a multiple of four', ({ values }) => ({ values: { ...values, offsetWords: 2 } }), /multiples of 4/],
    ['a short output', ({ output }) => ({ output: { ...output, size: 764 } }), /output of layer 0 reaches/],
    ['an output that is read', ({ output, keys }) => ({ keys: { ...keys, buffer: output } }), /Keep them in two buffers/],
  ])('with %s', (_, wrong, message) => {
    const { consumer, layout } = bound(layer);
    const compute = context.step('refused');
    const begun = consumer.begin(stepOf(layout), compute);
    const rows = (width: number) => ({ buffer: compute.upload(new Float32Array(3 * width)), offsetWords: 0, strideWords: width });
    const output = { label: 'output', size: 768, usage: 0x80 } as GPUBuffer;
    const dispatch = vi.spyOn(compute, 'dispatch');
    const right: AttentionRows = { queries: rows(64), keys: rows(32), values: rows(32), output };
    expect(() => begun.layer(0, { ...right, ...wrong(right) })).toThrow(
      expect.objectContaining({ name: 'KernelError', message: expect.stringMatching(message) }),
    );
    expect(() => begun.layer(4, right)).toThrow(refusal('step-refused', /has no layer 4; its layers are 0/));
    expect(dispatch).not.toHaveBeenCalled();
  });
});
