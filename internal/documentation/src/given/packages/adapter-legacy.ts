import type { StepRequest } from '@bufferwise/adapter-kit';
import type { LegacyAttentionLayer, LegacyAttentionRows } from '@bufferwise/adapter-legacy';
import type { HostPageDevice, KvCache } from '@bufferwise/cache-manager';
import type { CacheConfig } from '@bufferwise/core-policy';

export { StepPages } from '@bufferwise/adapter-kit';
export { LegacyAttentionConsumer } from '@bufferwise/adapter-legacy';
export { KvCacheManager } from '@bufferwise/cache-manager';
export { defineCacheConfig } from '@bufferwise/core-policy';
export { ComputeContext, WebGpuPageDevice } from '@bufferwise/gpu-kernels';
export { StorageLayout } from '@bufferwise/scratch-allocator';

export declare const device: GPUDevice & HostPageDevice;
export declare const config: CacheConfig;
export declare const first: KvCache;
export declare const second: KvCache;
export declare const layers: LegacyAttentionLayer[];
export const tiers = [{ tier: 'device', quota: 64 << 20 }] as const;
export declare const requests: KvCache[];
export declare const maxBlocks: number;
export declare const rows: StepRequest[];
export declare const queries: LegacyAttentionRows['queries'];
export declare const keys: LegacyAttentionRows['keys'];
export declare const values: LegacyAttentionRows['values'];
export declare const output: LegacyAttentionRows['output'];
