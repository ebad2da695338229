import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { ConfigError } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { readModel } from '../model/model.ts';
import { whalerFiles } from '../model/testing/whaler-files.ts';
import { DEFAULT_DEVICE_BYTES, DEFAULT_TOKENS_PER_BLOCK, type EngineCacheOptions, engineCacheConfig } from './cache-config.ts';

const { description: model } = readModel(whalerFiles());

const MIB = 2 ** 20;
const CHUNK_TOKENS = 128;

/** Pages of each group of the demo model: state, window, full attention. */
function pagesOf(options: EngineCacheOptions, chunkTokens = CHUNK_TOKENS): number[] {
  const manager = new KvCacheManager({ config: engineCacheConfig(model, options, chunkTokens), device: new HostPageDevice() });
  return manager.storageStatistics(0).map(({ total }) => total);
}

describe('memory is shared out by what a prefill chunk leaves in each group', () => {
  test('59,520 bytes of state, eight blocks of 16,384 and eight of 8,192: 256,128 bytes, as often as memory holds them', () => {
    const { typicalStep } = engineCacheConfig(model, { deviceBytes: 100 * 256_128 }, CHUNK_TOKENS);
    expect(typicalStep?.kvCaches).toEqual(new Array(100).fill({ capacity: 128, historyLength: 0 }));
    const numChunks = (deviceBytes: number, chunkTokens: number) =>
      engineCacheConfig(model, { deviceBytes }, chunkTokens).typicalStep?.kvCaches.length;
    expect(numChunks(100 * 256_128 + 1, CHUNK_TOKENS)).toBe(101);
    expect(numChunks(1, CHUNK_TOKENS)).toBe(1);
  });

  test('a block counts whole as soon as a token of it is written, the state once whatever the chunk', () => {
    const numChunks = (chunkTokens: number) =>
      engineCacheConfig(model, { deviceBytes: 10 * MIB }, chunkTokens).typicalStep?.kvCaches.length;
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
    expect(engineCacheConfig(model, { deviceBytes: 2 ** 40 }, 1).typicalStep?.kvCaches).toHaveLength(1024);
  });

  test('unless the caller says otherwise', () => {
    expect(engineCacheConfig(model, { poolRatio: [4, 1, 1] }, CHUNK_TOKENS)).toMatchObject({
      initialPoolRatio: [4, 1, 1],
    });
    expect(() => engineCacheConfig(model, { poolRatio: [1] }, CHUNK_TOKENS)).toThrow(
      expect.objectContaining({ code: 'config-pool-ratio-length', path: 'initialPoolRatio' }),
    );
  });
});

test('without options a block has 16 tokens, and all pages 64 MiB', () => {
  const config = engineCacheConfig(model, {}, CHUNK_TOKENS);
  expect([DEFAULT_TOKENS_PER_BLOCK, DEFAULT_DEVICE_BYTES]).toEqual([16, 64 * 2 ** 20]);
  expect(config.tokensPerBlock).toBe(16);
  expect(config.tiers).toEqual([{ tier: 'device', quota: 64 * 2 ** 20 }]);
  expect(engineCacheConfig(model, { deviceBytes: 1000, tokensPerBlock: 8 }, CHUNK_TOKENS)).toMatchObject({
    tokensPerBlock: 8,
    tiers: [{ quota: 1000 }],
  });
});

test('every layer of the model is there, with the window and the sinks of the model', () => {
  const { layers } = engineCacheConfig(model, {}, CHUNK_TOKENS);
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

test('options that fit no cache are refused, with the path to what is wrong', () => {
  expect(() => engineCacheConfig(model, { deviceBytes: 0 }, CHUNK_TOKENS)).toThrow(ConfigError);
  expect(() => engineCacheConfig(model, { deviceBytes: 0 }, CHUNK_TOKENS)).toThrow(
    expect.objectContaining({ path: 'tiers[0].quota' }),
  );
  expect(() => engineCacheConfig(model, { tokensPerBlock: 0 }, CHUNK_TOKENS)).toThrow(
    expect.objectContaining({ path: 'tokensPerBlock' }),
  );
});
