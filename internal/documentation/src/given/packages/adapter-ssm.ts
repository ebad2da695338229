import type { Mamba2Rows } from '@bufferwise/adapter-ssm';
import { mamba2Layout, packHeadParams } from '@bufferwise/gpu-kernels';
import { openGpu, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';

export { reusedGroups, StepPages } from '@bufferwise/adapter-kit';
export { KvCacheManager } from '@bufferwise/cache-manager';
export { defineCacheConfig } from '@bufferwise/core-policy';

export const device = await (await openGpu()).requestDevice();
export const tiers = [{ tier: 'device', quota: 64 << 20 }] as const;
export const prompt = Array.from({ length: 40 }, (_, i) => i);

const shape = { numHeads: 8, headDim: 64, stateSize: 128, numGroups: 1, convWidth: 4 };
const layout = mamba2Layout(shape);
const heads = () => Float32Array.from({ length: shape.numHeads }, () => -1);
const bufferOf = (words: number) => storageBuffer(device, 4 * words);
const filled = (content: Float32Array) => ({ buffer: storageBuffer(device, content) });
const rowsOf = (strideWords: number) => ({ buffer: bufferOf(prompt.length * strideWords), offsetWords: 0, strideWords });

export const convWeight: Mamba2Rows['convWeight'] = filled(new Float32Array(layout.numChannels * shape.convWidth));
export const convBias: Mamba2Rows['convBias'] = filled(new Float32Array(layout.numChannels));
export const headParams: Mamba2Rows['headParams'] = filled(packHeadParams({ dtBias: heads(), aLog: heads(), dSkip: heads() }));
export const projection: Mamba2Rows['projection'] = rowsOf(layout.projection.rowWords);
export const xBC: Mamba2Rows['xBC'] = rowsOf(layout.numChannels);
export const y: Mamba2Rows['y'] = rowsOf(layout.innerSize);
