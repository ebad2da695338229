/**
 * What a KV-cache config means. Pure and synchronous: no dependency, no clock, no I/O.
 *
 * @packageDocumentation
 */

// What an engine writes down

export type { BatchDesc, KvCacheDesc, ResolvedBatchDesc } from './config/batch-desc.ts';
export type { BufferConfig, BufferId, ResolvedBuffer } from './config/buffer-config.ts';
export { type CacheConfig, type CacheConfigInput, defineCacheConfig, type SwaScratchReuse } from './config/cache-config.ts';
export type {
  AttentionLayerConfig,
  LayerConfig,
  ResolvedAttentionLayer,
  ResolvedLayer,
  ResolvedSsmLayer,
  SsmLayerConfig,
} from './config/layer-config.ts';
export type { DeviceTierConfig, DiskTierConfig, HostTierConfig, TierConfig } from './config/tier-config.ts';

// The layers of real models

export type { CacheDtype } from './presets/cache-dtype.ts';
export type { PresetFamily } from './presets/family.ts';
export type { BytesByPolicy, LayerOrigin, ModelPreset, PresetSaving } from './presets/model-preset.ts';
export { presetLayers } from './presets/preset-layers.ts';
export type { PresetOptions, PresetVariant } from './presets/preset-options.ts';

// Lifecycles and groups

export {
  type AttentionLifecycle,
  type AttentionLifecycleOptions,
  fullAttention,
  type LayerGroupId,
  type Lifecycle,
  type LifecycleId,
  lifecycleId,
  lifecycleKey,
  type SlidingWindowOptions,
  type SsmLifecycle,
  sameLifecycle,
  slidingWindow,
  ssmState,
} from './lifecycle/lifecycle.ts';
export { LifecycleRegistry } from './lifecycle/lifecycle-registry.ts';

// Which blocks matter

export { type ScratchStep, scratchBegin, scratchEnd, scratchRange } from './lifecycle/scratch-range.ts';
export { staleBegin, staleEnd, staleRange } from './lifecycle/stale-range.ts';

// What reuse needs, supplies and counts

export { isLive, type MatchNeeds, matchNeeds, numTokensNeeded, snapshotBlock } from './reuse/match-needs.ts';
export { canCompleteAt, coverageAt, type TokenRange } from './reuse/optional-coverage.ts';
export { type ReuseOutcome, reuseOutcome } from './reuse/reuse-accounting.ts';
export { reuseEndpoint } from './reuse/reuse-endpoint.ts';
export {
  DEFAULT_REUSE_POLICY,
  isShareable,
  limitsMatch,
  REUSE_POLICIES,
  type ReusePolicy,
  resolveReusePolicy,
} from './reuse/reuse-policy.ts';

// Errors

export { AmbiguousLayerError } from './errors/ambiguous-layer-error.ts';
export { BufferwiseError } from './errors/bufferwise-error.ts';
export { ConfigError, type ConfigFault, type ConfigFaultCode } from './errors/config-error.ts';
export type { Fault, ReadFaultCode } from './errors/fault.ts';
export { PresetError, type PresetFault, type PresetFaultCode } from './errors/preset-error.ts';
export { type ReuseSelectionCode, ReuseSelectionError, type ReuseSelectionList } from './errors/reuse-selection-error.ts';
export { StateError } from './errors/state-error.ts';
export { UnknownBufferError } from './errors/unknown-buffer-error.ts';
export { UnknownLifecycleError } from './errors/unknown-lifecycle-error.ts';

// Ranges and index types

export { alignDown, type BlockRange, divDown, divUp } from './block-range.ts';
export { type Branded, checkedIndex } from './branded.ts';
