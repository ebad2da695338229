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
export type { StorageDtype } from './kernel/storage-dtype.ts';
// Gated delta nets
export {
  type GatedDeltaOperands,
  type GatedDeltaReplayOperands,
  type GatedDeltaShape,
  gatedDeltaRingWords,
  gatedDeltaRowWords,
  recordGatedDelta,
  recordGatedDeltaReplay,
} from './kernels/gated-delta/gated-delta.ts';
// Pages
export type { KvPages, KvScales, KvStorage, PagePlaces } from './kernels/kv-pages/kv-pages.ts';
// Mamba-2 layers
export {
  type Mamba2MixerOperands,
  type Mamba2ReplayOperands,
  type Mamba2Warmup,
  recordMamba2Mixer,
  recordMamba2Replay,
  warmUpMamba2,
} from './kernels/mamba2/mamba2.ts';
export { type Mamba2Layout, type Mamba2Shape, mamba2Layout } from './kernels/mamba2/mamba2-shape.ts';
export {
  type HeadParams,
  packHeadParams,
  recordSsm,
  recordSsmReplay,
  recordSsmScan,
  recordSsmStep,
  type SsmOperands,
  type SsmReplayOperands,
  ssmRingWords,
} from './kernels/mamba2/ssm.ts';
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
  type PageIndexShape,
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
  type QuantisedPageWriteDispatch,
  type QuantisedPageWriteOptions,
  quantisedPageWriteKernel,
  recordQuantisedPageWrite,
} from './kernels/page-write/quantised-page-write.ts';
export {
  type AttentionShape,
  type DecodeOperands,
  type FullAttentionShape,
  type LatentAttention,
  latentAttention,
  PagedAttention,
  type PagedAttentionOptions,
  type PrefillOperands,
  type SelectedBlocks,
} from './kernels/paged-attention/paged-attention.ts';
// Recurrent layers: what they share
export {
  type CausalConvOperands,
  type CausalConvShape,
  causalConvKernel,
  recordCausalConv,
  type TailPages,
  type TailRing,
} from './kernels/recurrent/causal-conv.ts';
export type { PagePool, RequestPages, TokenRows } from './kernels/recurrent/operands.ts';
export { type PackedRequests, packRequests } from './kernels/recurrent/packed-requests.ts';
export type { RingPages } from './kernels/recurrent/replay.ts';
export {
  afterReplay,
  packReplay,
  type ReplayCursor,
  type ReplayRequests,
  type ReplayRing,
  settlesRing,
} from './kernels/recurrent/replay-ring.ts';
export { packSnapshots, type Snapshot, type SnapshotTable } from './kernels/recurrent/snapshots.ts';
export type { StateShape } from './kernels/recurrent/state-shape.ts';
export type { Words } from './kernels/recurrent/tables.ts';
export type { RecurrentOptions } from './kernels/recurrent/variant.ts';
