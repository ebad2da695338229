// Device: pool memory and its port
export { DeviceLostError } from './device/device-lost.ts';
export { type PoolLimit, poolBytes, requiredLimits } from './device/limits.ts';
export { Readback, type ReadRange } from './device/readback.ts';
export { WebGpuPageDevice, type WebGpuPageDeviceOptions } from './device/webgpu-page-device.ts';
export { WebGpuPoolMemory } from './device/webgpu-pool-memory.ts';
// Errors
export { DeviceLimitError, PoolError, type PoolErrorCode } from './errors/device-error.ts';
export { GpuError } from './errors/gpu-error.ts';
export { KernelError, type KernelErrorCode } from './errors/kernel-error.ts';
// Kernels: stating and running them
export { bindingWords, requireBindingWords } from './kernel/binding-words.ts';
export { ComputeContext } from './kernel/compute-context.ts';
export type { Binding, ComputeStep, DispatchOptions, StepCounts } from './kernel/compute-step.ts';
export {
  type BindingKind,
  defineKernel,
  type Kernel,
  type KernelConstants,
  type WorkgroupCount,
  type WorkgroupSize,
} from './kernel/kernel.ts';
export { type ParamLayout, type ParamType, packParams } from './kernel/params.ts';
export type { StepData } from './kernel/step-data.ts';
// Mamba-2 layers
export {
  type CausalConvOperands,
  type CausalConvShape,
  causalConvKernel,
  type HeadParams,
  type Mamba2Layout,
  type Mamba2MixerOperands,
  type Mamba2Shape,
  mamba2Layout,
  type PackedRequests,
  packHeadParams,
  packRequests,
  type RequestPages,
  recordCausalConv,
  recordMamba2Mixer,
  recordSsmScan,
  recordSsmStep,
  type SsmOperands,
  type SsmShape,
  ssmScanKernel,
  ssmStepKernel,
  type TokenRows,
  type Words,
  warmUpMamba2,
} from './kernels/mamba2/mamba2.ts';
// Pages
export {
  type PageCopyKernel,
  type PageCopyOptions,
  type PageCopyShape,
  pageClearKernels,
  pageCopyKernels,
  recordPageClear,
  recordPageCopy,
  uploadSlotPairs,
  uploadSlots,
} from './kernels/page-copy/page-copy.ts';
export {
  type PageIndexOptions,
  type PageIndexPlan,
  type PageIndexScratch,
  type PageIndexSection,
  type PageIndexSource,
  type PageIndexTable,
  pageIndexKernel,
  planPageIndex,
  recordPageIndex,
} from './kernels/page-index/page-index.ts';
export {
  type PageWriteOptions,
  type PageWriteShape,
  pageWriteKernels,
  recordPageWrite,
} from './kernels/page-write/page-write.ts';
export {
  type AttentionShape,
  type DecodeOperands,
  type KvPages,
  PagedAttention,
  type PagedAttentionOptions,
  type PrefillOperands,
} from './kernels/paged-attention/paged-attention.ts';
