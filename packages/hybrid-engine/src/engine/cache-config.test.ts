import { ConfigError } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { parseModelConfig } from '../model/model-config.ts';
import { whalerFiles } from '../model/testing/whaler-files.ts';
import { DEFAULT_DEVICE_BYTES, DEFAULT_TOKENS_PER_BLOCK, engineCacheConfig } from './cache-config.ts';

const model = parseModelConfig(JSON.parse(new TextDecoder().decode(whalerFiles().config)));

/** One page of keys or of values: 16 tokens of 2 heads of 32 values of 4 bytes. */
const PAGE_BYTES = 16 * 2 * 32 * 4;
/** The state of one layer, 256 × 16 values, and its convolution tail, 3 rows of 288. */
const STATE_BYTES = 256 * 16 * 4 + 3 * 288 * 4;

describe('memory is shared out by what a prefill chunk leaves in each group', () => {
  test('a snapshot of three layers, eight blocks of two windowed layers, eight of the full one', () => {
    const { initialPoolRatio } = engineCacheConfig(model, {}, 128);
    expect(initialPoolRatio).toEqual([3 * STATE_BYTES, 8 * 2 * 2 * PAGE_BYTES, 8 * 2 * PAGE_BYTES]);
    expect(initialPoolRatio).toEqual([59_520, 131_072, 65_536]);
  });

  test('a block counts whole as soon as a token of it is written, the state once whatever the chunk', () => {
    const ratio = (chunkTokens: number) => engineCacheConfig(model, {}, chunkTokens).initialPoolRatio;
    expect(ratio(1)).toEqual([59_520, 16_384, 8_192]);
    expect(ratio(16)).toEqual(ratio(1));
    expect(ratio(17)).toEqual([59_520, 32_768, 16_384]);
  });

  test('larger blocks hold the same bytes, rounded up to blocks', () => {
    const ratio = (tokensPerBlock: number) => engineCacheConfig(model, { tokensPerBlock }, 128).initialPoolRatio;
    expect(ratio(64)).toEqual(ratio(16));
    expect(ratio(256)).toEqual([59_520, 262_144, 131_072]);
  });

  test('unless the caller says otherwise', () => {
    expect(engineCacheConfig(model, { poolRatio: [4, 1, 1] }, 128).initialPoolRatio).toEqual([4, 1, 1]);
    expect(() => engineCacheConfig(model, { poolRatio: [1] }, 128)).toThrow(
      expect.objectContaining({ code: 'config-pool-ratio-length', path: 'initialPoolRatio' }),
    );
  });
});

test('without options a block has 16 tokens, and all pages 64 MiB', () => {
  const config = engineCacheConfig(model, {}, 128);
  expect([DEFAULT_TOKENS_PER_BLOCK, DEFAULT_DEVICE_BYTES]).toEqual([16, 64 * 2 ** 20]);
  expect(config.tokensPerBlock).toBe(16);
  expect(config.tiers).toEqual([{ tier: 'device', quota: 64 * 2 ** 20 }]);
  expect(engineCacheConfig(model, { deviceBytes: 1000, tokensPerBlock: 8 }, 128)).toMatchObject({
    tokensPerBlock: 8,
    tiers: [{ quota: 1000 }],
  });
});

test('every layer of the model is there, with the window and the sinks of the model', () => {
  const { layers } = engineCacheConfig(model, {}, 128);
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
  expect(() => engineCacheConfig(model, { deviceBytes: 0 }, 128)).toThrow(ConfigError);
  expect(() => engineCacheConfig(model, { deviceBytes: 0 }, 128)).toThrow(expect.objectContaining({ path: 'tiers[0].quota' }));
  expect(() => engineCacheConfig(model, { tokensPerBlock: 0 }, 128)).toThrow(expect.objectContaining({ path: 'tokensPerBlock' }));
});
