// Front door

// Errors
export { TokenError } from './errors/token-error.ts';
// Inspection
export type {
  BeamSnapshot,
  BlockSnapshot,
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
// What the outside provides
export type { PageCommand, PageDevice, PoolMemory, PoolSpec } from './ports/page-device.ts';
// What a request is asked and tells
export type { CommitOptions } from './request/commit.ts';
export { DropPlan } from './request/drop-plan.ts';
export type { ForkOptions } from './request/fork.ts';
export type { MatchDepths } from './request/match.ts';
export type { PriorityFn } from './request/priority.ts';
export type { GroupReuseStatus } from './request/reuse-status.ts';
export type { ResumeOptions } from './request/selection.ts';
// Statistics
export type { CacheStatistics, GroupStatistics, PoolGroupStatistics } from './statistics/statistics.ts';
export { HostPageDevice, HostPoolMemory } from './tiers/host-page-device.ts';
export type { ReuseScope } from './tree/reuse-scope.ts';
export type { MultimodalDigest, TokenSeq } from './tree/token-seq.ts';
