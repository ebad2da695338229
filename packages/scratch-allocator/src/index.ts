export { PoolTooLargeError } from './errors/pool-too-large-error.ts';
export {
  type ConfigExplanation,
  type ExplainOptions,
  explain,
  type TotalRequestExplanation,
  type TotalsExplanation,
} from './explain/explain.ts';
export { explainPair, formatPair, type PairDifference, type PairExplanation } from './explain/explain-pair.ts';
export { type FormatOptions, formatExplanation } from './explain/format-explanation.ts';
export type { BufferExplanation, GroupExplanation, PoolExplanation, RequestExplanation } from './explain/group-explanation.ts';
export type { ScratchChunk, ScratchExplanation } from './explain/scratch-explanation.ts';
export { type TextColumn, textTable, wrapText } from './explain/text-table.ts';
export type { PoolGroupExplanation, TierExplanation } from './explain/tier-explanation.ts';
export { formatBytes, formatCount } from './explain/units.ts';
export type { AggregatedBuffer, AggregatedPageDesc } from './layout/aggregated-pages.ts';
export type { BufferAttr } from './layout/buffer-attr.ts';
export type { CoalescedBuffer } from './layout/coalescing.ts';
export type { ColdPoolGroupDesc, PoolDesc, PoolGroupDesc } from './layout/pool-group.ts';
export { StorageLayout } from './layout/storage-layout.ts';
export {
  BAD_PAGE_INDEX,
  type ConvertOptions,
  PageIndexConverter,
  type PageIndexMode,
  type PageIndexScheme,
} from './page-index-converter.ts';
export { batchSlots } from './planning/batch-slots.ts';
export { type ClampRequest, clampMaxSequenceLength } from './planning/clamp-max-sequence-length.ts';
export { type CutPoolsOptions, cutPools } from './planning/cut-pools.ts';
export { type DevicePool, devicePools } from './planning/device-pools.ts';
export { type FittingRequestsOptions, fittingRequests } from './planning/fitting-requests.ts';
export { grainsFor, maxSlotsIn } from './planning/grains.ts';
export { type BatchRules, minDeviceSlots, structuralFloors } from './planning/min-slots.ts';
export { planSlots, planTier, type SlotPlanConfig, type TierPlan, type TierPlanOptions } from './planning/plan-slots.ts';
export { requestPages } from './planning/request-pages.ts';
export { tierGranularity } from './planning/tier-granularity.ts';
export { ceilMul, type Rational, rational } from './rational.ts';
export type { ScratchDesc } from './scratch/scratch-desc.ts';
export { SlotAllocator } from './slot-allocator.ts';
export { type PageSource, StepTable } from './step-table.ts';
