import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { ConfigError } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { readModel } from '../model/model.ts';
import { whalerFiles } from '../model/testing/whaler-files.ts';
import { DEFAULT_DEVICE_BYTES, DEFAULT_TOKENS_PER_BLOCK, type EngineCacheOptions, engineCacheConfig } from './cache-config.ts';

const { description: model } = readModel(whalerFiles());

const MIB = 2 ** 20;
const CHUNK_TOKENS = 128;

const configOf = (options: EngineCacheOptions, chunkTokens = CHUNK_TOKENS) =>
  engineCacheConfig(model, options, { memory: {}, chunkTokens });

/** Pages of each group of the demo model: state, window, full attention. */
function pagesOf(options: EngineCacheOptions, chunkTokens = CHUNK_TOKENS): number[] {
  const manager = new KvCacheManager({ config: configOf(options, chunkTokens), device: new HostPageDevice() });
  return manager.storageStatistics(0).map(({ total }) => total);
}

describe('memory is shared out by what a prefill chunk leaves in each group', () => {
  test('59,520 bytes of state, eight blocks of 16,384 and eight of 8,192: 256,128 bytes, as often as memory holds them', () => {
    const { typicalStep } = configOf({ deviceBytes: 100 * 256_128 });
    expect(typicalStep?.kvCaches).toEqual(new Array(100).fill({ capacity: 128, historyLength: 0 }));
    const numChunks = (deviceBytes: number, chunkTokens?: number) =>
      configOf({ deviceBytes }, chunkTokens).typicalStep?.kvCaches.length;
    expect(numChunks(100 * 256_128 + 1)).toBe(101);
    expect(numChunks(1)).toBe(1);
  });

  test('a block counts whole as soon as a token of it is written, the state once whatever the chunk', () => {
    const numChunks = (chunkTokens: number) => configOf({ deviceBytes: 10 * MIB }, chunkTokens).typicalStep?.kvCaches.length;
    expect(numChunks(1)).toBe(Math.ceil((10 * MIB) / (59_520 + 16_384 + 8_192)));
    expect(numChunks(16)).toBe(numChunks(1));
    expect(numChunks(17)).toBe(Math.ceil((10 * MIB) / (59_520 + 2 * 16_384 + 2 * 8_192)));
  });

  test('so a chunk of every kind finds its eight pages of attention for each of state', () => {
    expect(pagesOf({})).toEqual([256, 2048, 2048]);
    expect(pagesOf({ deviceBytes: 256 * MIB })).toEqual([1024, 8320, 8448]);
    const [shortChunks, longChunks] = [16, 512].map((chunkTokens) => pagesOf({}, chunkTokens));
    expect(shortChunks[0]).toBeGreaterThan(256);
    expect(longChunks[0]).toBeLessThan(256);
  });

  test('however little memory there is, states can be kept beside that of a request', () => {
    for (const mib of [1, 6, 8, 10, 12, 14, 16, 20, 24, 32]) {
      expect(Math.min(...pagesOf({ deviceBytes: mib * MIB })), `${mib} MiB`).toBeGreaterThanOrEqual(42);
    }
  });

  test('however much there is, the list of chunks stays short', () => {
    expect(configOf({ deviceBytes: 2 ** 40 }, 1).typicalStep?.kvCaches).toHaveLength(1024);
  });

  test('unless the caller says otherwise', () => {
    expect(configOf({ poolRatio: [4, 1, 1] })).toMatchObject({
      initialPoolRatio: [4, 1, 1],
    });
    expect(() => configOf({ poolRatio: [1] })).toThrow(
      expect.objectContaining({ code: 'config-pool-ratio-length', path: 'initialPoolRatio' }),
    );
  });
});

test('scratch keeps as many tokens in pages as may be taken back, and leaves windows the room of what stays', () => {
  expect(configOf({}).swaScratchReuse).toBeNull();
  const step = { memory: {}, chunkTokens: 512, maxDrafts: 3 };
  const config = engineCacheConfig(model, { scratch: true }, step);
  expect(config.swaScratchReuse).toEqual({ maxRewindLen: 3 });
  const [, window] = pagesOf({ scratch: true }, 512);
  expect(window).toBeLessThan(pagesOf({}, 512)[1]);
});

test('without options a block has 16 tokens, and all pages 64 MiB', () => {
  const config = configOf({});
  expect([DEFAULT_TOKENS_PER_BLOCK, DEFAULT_DEVICE_BYTES]).toEqual([16, 64 * 2 ** 20]);
  expect(config.tokensPerBlock).toBe(16);
  expect(config.tiers).toEqual([{ tier: 'device', quota: 64 * 2 ** 20 }]);
  expect(configOf({ deviceBytes: 1000, tokensPerBlock: 8 })).toMatchObject({
    tokensPerBlock: 8,
    tiers: [{ quota: 1000 }],
  });
});

test('every layer of the model is there, with the window and the sinks of the model', () => {
  const { layers } = configOf({});
  expect(layers.map(({ type, layerId }) => `${layerId} ${type}`)).toEqual([
    '0 ssm',
    '1 attention',
    '2 ssm',
    '3 attention',
    '4 ssm',
    '5 attention',
  ]);
  expect([1, 5].map((layerId) => layers[layerId])).toMatchObject([
    { slidingWindowSize: 128, numSinkTokens: 4 },
    { slidingWindowSize: 128, numSinkTokens: 4 },
  ]);
  expect(layers[3]).not.toHaveProperty('slidingWindowSize');
});

test('host memory is a tier of its own, where there is any', () => {
  expect(configOf({ hostBytes: 0 }).tiers).toHaveLength(1);
  expect(configOf({ hostBytes: 1000 }).tiers[1]).toEqual({ tier: 'host', quota: 1000 });
  expect(() => configOf({ hostBytes: -1 })).toThrow(expect.objectContaining({ path: 'tiers[1].quota' }));
});

test('options that fit no cache are refused, with the path to what is wrong', () => {
  expect(() => configOf({ deviceBytes: 0 })).toThrow(ConfigError);
  expect(() => configOf({ deviceBytes: 0 })).toThrow(expect.objectContaining({ path: 'tiers[0].quota' }));
  expect(() => configOf({ tokensPerBlock: 0 })).toThrow(expect.objectContaining({ path: 'tokensPerBlock' }));
});

describe('policies', () => {
  const policiesOf = (options: EngineCacheOptions) =>
    configOf(options).layers.map(({ buffers }) => buffers.map(({ reusePolicy }) => reusePolicy));
  const required = ['required', 'required'];

  test('are all required without a word', () => {
    expect(policiesOf({})).toEqual(new Array(6).fill(required));
  });

  test('are named by role, or by layer and role, which counts more', () => {
    const policies = policiesOf({ policies: { value: 'optional', '3.value': 'private', '0.ssm_state': 'optional' } });
    expect([0, 1, 3].map((layer) => policies[layer])).toEqual([
      ['optional', 'required'],
      ['required', 'optional'],
      ['required', 'private'],
    ]);
  });

  test('are asked for, buffer by buffer', () => {
    const policies = policiesOf({ policies: (layerId, role) => (layerId === 5 && role === 'key' ? 'private' : undefined) });
    expect(policies[5]).toEqual(['private', 'required']);
    expect(policies[1]).toEqual(required);
  });

  test('of buffers that there are not are refused, with the names that there are', () => {
    expect(() => configOf({ policies: { keys: 'optional' } })).toThrow(
      expect.objectContaining({
        code: 'engine-options',
        message: expect.stringMatching(/names keys, .* ssm_state, conv_state, key, value/),
      }),
    );
  });

  test('auto keeps windows beside state', () => {
    expect(policiesOf({ policies: 'auto' })).toEqual(new Array(6).fill(required));
  });
});
