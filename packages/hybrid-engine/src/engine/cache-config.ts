import {
  type CacheConfig,
  type CacheConfigInput,
  defineCacheConfig,
  type LifecycleId,
  LifecycleRegistry,
} from '@bufferwise/core-policy';
import { cacheLayers } from '../model/layers.ts';
import type { HybridModelConfig } from '../model/model-config.ts';

/** How the engine keeps what the model remembers. */
export interface EngineCacheOptions {
  /** Tokens of a block. Default 16. */
  tokensPerBlock?: number;
  /** Bytes of device memory for all pages. Default 64 MiB. */
  deviceBytes?: number;
  /** Bytes for each group relative to each other, index = group id. Default: what one prefill chunk leaves behind. */
  poolRatio?: readonly number[];
}

export const DEFAULT_TOKENS_PER_BLOCK = 16;
export const DEFAULT_DEVICE_BYTES = 64 * 2 ** 20;

/** The cache config of a model: its layers as they are, memory shared out by what a prefill chunk leaves behind. */
export function engineCacheConfig(model: HybridModelConfig, options: EngineCacheOptions, chunkTokens: number): CacheConfig {
  const { tokensPerBlock = DEFAULT_TOKENS_PER_BLOCK, deviceBytes = DEFAULT_DEVICE_BYTES } = options;
  const input: CacheConfigInput = {
    tokensPerBlock,
    layers: cacheLayers(model, { tokensPerBlock }),
    tiers: [{ tier: 'device', quota: deviceBytes }],
  };
  const config = defineCacheConfig(input);
  return defineCacheConfig({ ...input, initialPoolRatio: options.poolRatio ?? bytesOfChunk(config, chunkTokens) });
}

/** Bytes that one chunk leaves in each group: its blocks, and one snapshot of the state at its end. */
function bytesOfChunk(config: CacheConfig, chunkTokens: number): number[] {
  const registry = LifecycleRegistry.fromConfig(config);
  const sizes = new Map(
    config.layers.flatMap(({ layerId, buffers }) => buffers.map(({ role, size }) => [`${layerId} ${role}`, size])),
  );
  return registry.bufferGrouping.map((buffers, index) => {
    const bytes = buffers.reduce((sum, { layerId, role }) => sum + (sizes.get(`${layerId} ${role}`) ?? 0), 0);
    const isState = registry.get(index as LifecycleId).kind === 'ssm';
    return isState ? bytes : bytes * Math.ceil(chunkTokens / config.tokensPerBlock);
  });
}
