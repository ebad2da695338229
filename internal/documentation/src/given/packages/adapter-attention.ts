import { AttentionConsumer, type AttentionRows } from '@bufferwise/adapter-attention';
import type { StepRequest } from '@bufferwise/adapter-kit';
import { KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig } from '@bufferwise/core-policy';
import { type ComputeStep, ComputeContext as Context, WebGpuPageDevice } from '@bufferwise/gpu-kernels';
import { openGpu, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';

export const device = await (await openGpu()).requestDevice();

const QUERY_HEADS = 16;
const KV_HEADS = 2;
const HEAD_DIM = 64;
const shape = { numQueryHeads: QUERY_HEADS, numKvHeads: KV_HEADS, headDim: HEAD_DIM, storage: 'f16' } as const;
const { layers } = new AttentionConsumer(Context.of(device), {
  tokensPerBlock: 16,
  layers: [
    { layerId: 0, ...shape },
    { layerId: 1, ...shape, slidingWindowSize: 1024, numSinkTokens: 4, policies: { value: 'private' } },
  ],
});
const config = defineCacheConfig({ tokensPerBlock: 16, layers, tiers: [{ tier: 'device', quota: 32 << 20 }] });
export const manager = new KvCacheManager({ config, device: new WebGpuPageDevice(device) });

/** Two requests, of three tokens and of one. */
export const caches = [manager.createKvCache(), manager.createKvCache()];
const lengths = [3, 1];
for (const [i, cache] of caches.entries()) {
  await cache.resume();
  cache.resize(lengths[i]);
}
export const maxBlocks = 1;
export const requests: StepRequest[] = lengths.map((numTokens) => ({ start: 0, numTokens, matched: 0, reusedGroups: new Set() }));

const numTokens = 4;
const words = { queries: QUERY_HEADS * HEAD_DIM, keys: KV_HEADS * HEAD_DIM };
const strideWords = words.queries + 2 * words.keys;
const bufferOf = (size: number) => storageBuffer(device, size);
export const qkv = bufferOf(4 * numTokens * strideWords);
export const queries: AttentionRows['queries'] = { buffer: qkv, offsetWords: 0, strideWords };
export const keys: AttentionRows['keys'] = { buffer: qkv, offsetWords: words.queries, strideWords };
export const values: AttentionRows['values'] = { buffer: qkv, offsetWords: words.queries + words.keys, strideWords };
export const output = bufferOf(4 * numTokens * words.queries);

export function recordProjection(_compute: ComputeStep, _layerId: number, _into: GPUBuffer): void {}
