import type { ConsumerStep } from '@bufferwise/adapter-kit';
import type { Mamba2Rows } from '@bufferwise/adapter-ssm';

export { KvCacheManager } from '@bufferwise/cache-manager';
export { defineCacheConfig } from '@bufferwise/core-policy';

export declare const device: GPUDevice;
export const tiers = [{ tier: 'device', quota: 64 << 20 }] as const;
export declare const prompt: number[];
export declare const step: ConsumerStep;
export declare const projection: Mamba2Rows['projection'];
export declare const convWeight: Mamba2Rows['convWeight'];
export declare const convBias: Mamba2Rows['convBias'];
export declare const headParams: Mamba2Rows['headParams'];
export declare const xBC: Mamba2Rows['xBC'];
export declare const y: Mamba2Rows['y'];
