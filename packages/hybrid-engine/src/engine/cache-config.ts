import { type CacheConfig, defineCacheConfig } from '@bufferwise/core-policy';
import type { KvStorage } from '@bufferwise/gpu-kernels';
import { cacheLayers, type MemoryOptions } from '../description/cache-layers.ts';
import type { ModelDescription } from '../description/model-description.ts';
import { type PolicyChoice, withPolicies } from './policy-choice.ts';

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
  /** How keys and values are kept. Default `f32`, which changes no token. */
  storage?: KvStorage;
  /**
   * Whether blocks that leave their sliding window within the step that writes them share a few slots of that step, instead of having a page
   * each. Saves memory where `chunkTokens` is larger than a window, and changes no token. Default false.
   */
  scratch?: boolean;
  /** Reuse policy of each buffer. Default: what each layer's consumer has: replay rings are private, all else is required. */
  policies?: PolicyChoice;
}

export const DEFAULT_TOKENS_PER_BLOCK = 16;
export const DEFAULT_DEVICE_BYTES = 64 * 2 ** 20;

/** Enough for the rounding of pools to vanish in the shares of the groups. */
const MAX_TYPICAL_CHUNKS = 1024;

/**
 * The cache config of a model: its layers with the chosen policies, memory shared out by what a prefill chunk leaves behind.
 *
 * @param step how the model keeps what it remembers (`memory`, as `GpuModel` is given it), how many tokens a chunk has at most, and how many
 *   behind it may be taken back. Default none
 * @throws {ConfigError} on options that fit no cache; {EngineError} `engine-options` on policies of buffers that there are not
 */
export function engineCacheConfig(
  model: ModelDescription,
  options: EngineCacheOptions,
  step: { memory: MemoryOptions; chunkTokens: number; maxDrafts?: number },
): CacheConfig {
  const { memory, chunkTokens, maxDrafts = 0 } = step;
  const { tokensPerBlock = DEFAULT_TOKENS_PER_BLOCK, deviceBytes = DEFAULT_DEVICE_BYTES, hostBytes = 0, poolRatio } = options;
  const whole = defineCacheConfig({
    tokensPerBlock,
    layers: cacheLayers(model, { ...memory, tokensPerBlock }),
    tiers: [{ tier: 'device', quota: deviceBytes }, ...(hostBytes === 0 ? [] : [{ tier: 'host' as const, quota: hostBytes }])],
    maxUtilForResume: options.maxUtilForResume,
    swaScratchReuse: options.scratch ? { maxRewindLen: maxDrafts } : undefined,
  });
  const config = defineCacheConfig({ ...whole, layers: withPolicies(whole, options.policies), initialPoolRatio: poolRatio });
  // As a batch and not as a ratio: a ratio may leave a group of states with the one page that a request cannot do without.
  const numChunks = Math.min(MAX_TYPICAL_CHUNKS, Math.ceil(deviceBytes / bytesOfChunk(config, chunkTokens)));
  const kvCaches = new Array(numChunks).fill({ capacity: chunkTokens, historyLength: 0 });
  return defineCacheConfig({ ...config, typicalStep: { kvCaches } });
}

/** Bytes that one chunk leaves behind: the blocks of attention, and one snapshot of the state at its end. */
function bytesOfChunk({ layers, tokensPerBlock }: CacheConfig, chunkTokens: number): number {
  const numBlocks = Math.ceil(chunkTokens / tokensPerBlock);
  return layers.reduce((sum, { type, buffers }) => {
    const bytes = buffers.reduce((total, { size }) => total + size, 0);
    return sum + (type === 'ssm' ? bytes : bytes * numBlocks);
  }, 0);
}
