// Front door

// Errors
export { PagesLostError } from './errors/pages-lost-error.ts';
export { TokenError } from './errors/token-error.ts';
// Events: what can be reused, told to the outside
export { keyToHex, keyToLeadingU64, keyToU64 } from './events/block-hash.ts';
export { EventLog } from './events/event-log.ts';
export { v1BlockHashes } from './events/v1-block-hash.ts';
export { encodeVllmBatch, type VllmBatchOptions } from './events/vllm/encode-vllm-batch.ts';
export { toVllmEvents, type VllmTranslation } from './events/vllm/to-vllm-events.ts';
export type {
  VllmAllBlocksCleared,
  VllmBlockRemoved,
  VllmBlockStored,
  VllmEvent,
  VllmExtraKey,
} from './events/vllm/vllm-events.ts';
export type { EvictablePages, EvictionPolicy, EvictionPolicyFactory } from './eviction/eviction-policy.ts';
export type { PageUse } from './eviction/page-use.ts';
export type { EvictionChoice } from './eviction/policies.ts';
// Inspection
export type {
  BeamSnapshot,
  BlockSnapshot,
  ColderTierSnapshot,
  GroupSnapshot,
  InspectOptions,
  ManagerSnapshot,
  PageSnapshot,
  PoolGroupSnapshot,
  RequestGroupSnapshot,
  RequestSnapshot,
  ScopeSnapshot,
  SlotSnapshot,
  SlotState,
} from './inspect/manager-snapshot.ts';
export { KvCache } from './kv-cache.ts';
export { type CreateKvCacheOptions, KvCacheManager, type KvCacheManagerOptions } from './kv-cache-manager.ts';
export type { PinOptions, PrefixPin } from './pin/prefix-pin.ts';
// What the outside provides
export type {
  ClearedEvent,
  CreatedEvent,
  KvEvent,
  KvEventSink,
  Medium,
  RemovedEvent,
  StoredBlock,
  StoredEvent,
  UpdatedEvent,
} from './ports/kv-event-sink.ts';
export type { PageCommand, PageDevice, PoolMemory, PoolSpec } from './ports/page-device.ts';
export type { TierStore, TierStoreOptions } from './ports/tier-store.ts';
// How memory is shared out anew
export type { MoveReason } from './rebalance/plan-move.ts';
export type { PoolGroupNeeds, RebalancePlan } from './rebalance/rebalance.ts';
// What a request is asked and tells
export type { CommitOptions } from './request/commit.ts';
export { DropPlan } from './request/drop-plan.ts';
export type { ForkOptions } from './request/fork.ts';
export type { MatchDepths } from './request/match.ts';
export type { MatchLimit, MatchLimitReason } from './request/match-limits.ts';
export type { PriorityFn } from './request/priority.ts';
export type { RetentionRange } from './request/retention.ts';
export type { GroupReuseStatus } from './request/reuse-status.ts';
export type { ResumeOptions } from './request/selection.ts';
export type { SnapshotPointsOptions } from './request/snapshot-points.ts';
// Statistics
export type { PageCounts, SnapshotLookups } from './statistics/page-counts.ts';
export type { PoolGroupPeaks } from './statistics/pool-group-peaks.ts';
export type { RequestStatistics } from './statistics/request-statistics.ts';
export type { CacheStatistics, GroupStatistics, IterationStatistics, PoolGroupStatistics } from './statistics/statistics.ts';
export { HostPageDevice, HostPoolMemory } from './tiers/host-page-device.ts';
export { MemoryTierStore } from './tiers/stores/memory-tier-store.ts';
// Names of blocks for the outside
export { type BlockKey, blockKey, blockKeys, rootKey } from './tree/block-key.ts';
export { multimodalTokens } from './tree/multimodal-tokens.ts';
export type { ReuseScope, ScopeIds } from './tree/reuse-scope.ts';
export type { MultimodalDigest, TokenSeq } from './tree/token-seq.ts';
