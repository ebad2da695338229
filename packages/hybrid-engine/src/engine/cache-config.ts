import { type CacheConfig, defineCacheConfig, type LayerConfig, type ReusePolicy } from '@bufferwise/core-policy';
import { cacheLayers } from '../model/layers.ts';
import type { HybridModelConfig } from '../model/model-config.ts';
import { EngineError } from './engine-error.ts';

/** How the engine keeps what the model remembers. */
export interface EngineCacheOptions {
  /** Tokens of a block. Default 16. */
  tokensPerBlock?: number;
  /** Bytes of device memory for all pages. Default 64 MiB. */
  deviceBytes?: number;
  /** Bytes of host memory for pages that leave the device. Default 0: none. */
  hostBytes?: number;
  /**
   * Bytes for each group relative to each other, index = group id. Default: what one prefill chunk leaves behind. A small
   * share may leave a group of states with one page, and so one request at a time and nothing to reuse.
   */
  poolRatio?: readonly number[];
  /** Share of the memory in use above which no further request comes onto the device, above 0 and at most 1. Default 0.97. */
  maxUtilForResume?: number;
  /** Reuse policy of each buffer. Default: all required. */
  policies?: PolicyChoice;
}

/**
 * Reuse policies by role of the buffers (`value`), or by layer and role (`3.value`), which counts more; or what says it for each. Buffers that
 * are not named are required.
 */
export type PolicyChoice = Readonly<Record<string, ReusePolicy>> | ((layerId: number, role: string) => ReusePolicy | undefined);

export const DEFAULT_TOKENS_PER_BLOCK = 16;
export const DEFAULT_DEVICE_BYTES = 64 * 2 ** 20;

/** Enough for the rounding of pools to vanish in the shares of the groups. */
const MAX_TYPICAL_CHUNKS = 1024;

/**
 * The cache config of a model: its layers as they are, memory shared out by what a prefill chunk leaves behind.
 *
 * @param chunkTokens tokens of a chunk at most
 * @throws {ConfigError} on options that fit no cache
 */
export function engineCacheConfig(model: HybridModelConfig, options: EngineCacheOptions, chunkTokens: number): CacheConfig {
  const { tokensPerBlock = DEFAULT_TOKENS_PER_BLOCK, deviceBytes = DEFAULT_DEVICE_BYTES, hostBytes = 0, poolRatio } = options;
  const config = defineCacheConfig({
    tokensPerBlock,
    layers: withPolicies(cacheLayers(model, { tokensPerBlock }), options.policies),
    tiers: [{ tier: 'device', quota: deviceBytes }, ...(hostBytes > 0 ? [{ tier: 'host' as const, quota: hostBytes }] : [])],
    initialPoolRatio: poolRatio,
    maxUtilForResume: options.maxUtilForResume,
  });
  // As a batch and not as a ratio: a ratio may leave a group of states with the one page that a request cannot do without.
  const numChunks = Math.min(MAX_TYPICAL_CHUNKS, Math.ceil(deviceBytes / bytesOfChunk(config, chunkTokens)));
  const kvCaches = new Array(numChunks).fill({ capacity: chunkTokens, historyLength: 0 });
  return defineCacheConfig({ ...config, typicalStep: { kvCaches } });
}

/** @throws {EngineError} `engine-options` on a name that no buffer has */
function withPolicies(layers: readonly LayerConfig[], choice: PolicyChoice = {}): LayerConfig[] {
  if (typeof choice !== 'function') requireNames(layers, Object.keys(choice));
  const policyOf = (layerId: number, role: string) =>
    typeof choice === 'function' ? choice(layerId, role) : (choice[`${layerId}.${role}`] ?? choice[role]);
  return layers.map((layer) => ({
    ...layer,
    buffers: layer.buffers.map((buffer) => ({
      ...buffer,
      reusePolicy: policyOf(layer.layerId, buffer.role) ?? buffer.reusePolicy,
    })),
  }));
}

function requireNames(layers: readonly LayerConfig[], names: readonly string[]): void {
  const known = new Set(layers.flatMap(({ layerId, buffers }) => buffers.flatMap(({ role }) => [role, `${layerId}.${role}`])));
  const unknown = names.find((name) => !known.has(name));
  if (unknown === undefined) return;
  throw new EngineError(
    'engine-options',
    `cache.policies names ${unknown}, which no buffer of the model is called; roles are ${[...new Set(layers.flatMap(({ buffers }) => buffers.map(({ role }) => role)))].join(', ')}, alone or behind a layer (3.${layers[0].buffers[0].role})`,
  );
}

/** Bytes that one chunk leaves behind: the blocks of attention, and one snapshot of the state at its end. */
function bytesOfChunk({ layers, tokensPerBlock }: CacheConfig, chunkTokens: number): number {
  const numBlocks = Math.ceil(chunkTokens / tokensPerBlock);
  return layers.reduce((sum, { type, buffers }) => {
    const bytes = buffers.reduce((total, { size }) => total + size, 0);
    return sum + (type === 'ssm' ? bytes : bytes * numBlocks);
  }, 0);
}
