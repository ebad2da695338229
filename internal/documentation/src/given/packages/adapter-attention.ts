import type { AttentionRows } from '@bufferwise/adapter-attention';
import type { StepRequest } from '@bufferwise/adapter-kit';
import type { KvCache, KvCacheManager } from '@bufferwise/cache-manager';
import type { ComputeStep } from '@bufferwise/gpu-kernels';

export declare const device: GPUDevice;
export declare const manager: KvCacheManager;
export declare const caches: KvCache[];
export declare const requests: StepRequest[];
export declare const maxBlocks: number;
export declare function recordProjection(compute: ComputeStep, layerId: number, into: GPUBuffer): void;
export declare const qkv: GPUBuffer;
export declare const queries: AttentionRows['queries'];
export declare const keys: AttentionRows['keys'];
export declare const values: AttentionRows['values'];
export declare const output: AttentionRows['output'];
