import type {
  ComputeStep,
  Mamba2ReplayOperands,
  Mamba2Shape,
  PageWriteShape,
  PrefillOperands,
  ReplayCursor,
} from '@bufferwise/gpu-kernels';
import { openGpu } from '@bufferwise-internal/webgpu-node';

export {
  afterReplay,
  ComputeContext,
  PagedAttention,
  packReplay,
  recordMamba2Replay,
  recordPageWrite,
  settlesRing,
} from '@bufferwise/gpu-kernels';

export const navigator = { gpu: { requestAdapter: () => openGpu() } };
export declare const device: GPUDevice;
export declare const step: ComputeStep;
export declare const pageIndices: Int32Array;
export declare const shape: Mamba2Shape & PageWriteShape;
export declare const newKeys: GPUBuffer;
export declare const places: Int32Array;
export declare const keys: PrefillOperands['keys'] & { buffer: GPUBuffer };
export declare const values: PrefillOperands['values'];
export declare const queries: PrefillOperands['queries'];
export declare const queryStart: PrefillOperands['queryStart'];
export declare const contextLength: PrefillOperands['contextLength'];
export declare const output: PrefillOperands['output'];
export declare const numTokens: number;
export declare const numRequests: number;
export declare const tokensPerRequest: Uint32Array;
export declare const cursors: ReplayCursor[];
export declare const layer: Mamba2ReplayOperands;
export declare const tail: Mamba2ReplayOperands['tail'];
export declare const state: Mamba2ReplayOperands['state'];
export declare const ringPages: Mamba2ReplayOperands['ring'];
export declare const numAccepted: number[];
