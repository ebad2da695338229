import type { LayerGroupId, ReusePolicy } from '@bufferwise/core-policy';
import type { ManagerState } from '../manager-state.ts';
import type { PageCounts, SnapshotLookups } from './page-counts.ts';
import type { RequestStatistics } from './request-statistics.ts';

/** What one group did between two calls of `takeIterationStatistics`. */
export type IterationStatistics = PageCounts;

/** Slots of one pool group in one tier: of `layout.poolGroups` on the device, of `layout.coldPoolGroups` elsewhere. */
export interface PoolGroupStatistics {
  /** Bytes of one slot over all pools of the group. */
  readonly slotBytes: number;
  /** Slots there are. */
  readonly total: number;
  /** Slots without a page. */
  readonly free: number;
  /**
   * Pages that may leave the tier: those that nobody holds and, where there is a colder tier, those that suspended requests
   * hold. They make room for whoever asks, as far as the colder tier has room for what is held.
   */
  readonly evictable: number;
  /** `free + evictable`. */
  readonly available: number;
  /** `total - available`. */
  readonly unavailable: number;
}

/** Counts of one group since the manager was made. */
export interface GroupStatistics {
  readonly groupId: LayerGroupId;
  readonly policy: ReusePolicy;
  /** Pages that exist now in any tier, held or listed. */
  readonly pages: number;
  /** Pages that left the device to make room, for a colder tier or for good. */
  readonly evictedPages: number;
  /** Snapshots and tail copies left out for want of a slot, or because the device refused them. */
  readonly missedSnapshots: number;
  /** Pages whose bytes were lost: with a device, or because a colder tier could not store them or give them back. */
  readonly lostPages: number;
  readonly counts: PageCounts;
  /** How often the group's state was looked for; null for attention. */
  readonly snapshots: SnapshotLookups | null;
}

export interface CacheStatistics {
  /** Requests that are not closed. */
  readonly openRequests: number;
  /** Since the manager was made. */
  readonly requests: RequestStatistics;
  /** Published blocks, over all scopes. */
  readonly blocks: number;
  /** Batches of events that the sink failed to take; 0 without a sink. */
  readonly failedEventPushes: number;
  /** Index = group id. */
  readonly groups: readonly GroupStatistics[];
}

export function poolGroupStatistics(state: ManagerState, tier: number): PoolGroupStatistics[] {
  return state.storage.tiers[tier].groups.map(({ slotBytes, slots, numLeaving }) => {
    const available = slots.free + numLeaving;
    return {
      slotBytes,
      total: slots.slots,
      free: slots.free,
      evictable: numLeaving,
      available,
      unavailable: slots.slots - available,
    };
  });
}

export function cacheStatistics(state: ManagerState): CacheStatistics {
  const { pages, evictedPages } = state.storage;
  const counts = state.groups.map(() => 0);
  for (const page of pages) counts[pages.lifecycle[page]]++;
  return {
    openRequests: state.open.size,
    requests: state.recorder.requests,
    blocks: state.tree.blocks.count - state.tree.roots.size,
    failedEventPushes: state.events?.failedPushes ?? 0,
    groups: state.groups.map(({ id, policy, kind }) => ({
      groupId: id,
      policy,
      pages: counts[id],
      evictedPages: evictedPages[id],
      missedSnapshots: state.missedSnapshots[id],
      lostPages: state.lostPages[id],
      counts: state.recorder.countsOf(id),
      snapshots: kind === 'ssm' ? state.recorder.snapshotsOf(id) : null,
    })),
  };
}
