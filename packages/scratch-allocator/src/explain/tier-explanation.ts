import type { CacheConfig, LifecycleId, ReusePolicy, TierConfig } from '@bufferwise/core-policy';
import type { StorageLayout } from '../layout/storage-layout.ts';
import type { TierPlan } from '../planning/plan-slots.ts';

/** How one tier spends its quota. */
export interface TierExplanation {
  readonly tier: TierConfig['tier'];
  /** Bytes that the config asks for. */
  readonly askedQuota: number;
  /** Bytes that it gets: whole grains, and no less than the minimum slots take. */
  readonly quota: number;
  /** Whether the minimum slots took more than was asked for. */
  readonly raised: boolean;
  /** Bytes of a grain, the step in which pools grow. */
  readonly granularity: number;
  /** Bytes of all slots. */
  readonly slotsBytes: number;
  /** Index = pool group: of the device, or of colder tiers. */
  readonly poolGroups: readonly PoolGroupExplanation[];
}

/** One pool group of a tier. */
export interface PoolGroupExplanation {
  /** The groups whose pages lie in it. */
  readonly groupIds: readonly LifecycleId[];
  readonly policy: ReusePolicy;
  /** Bytes of one slot over all its pools: one page. */
  readonly slotBytes: number;
  readonly slots: number;
  /** Slots below which it must not fall. */
  readonly minSlots: number;
  /** Bytes of all its slots. */
  readonly slotsBytes: number;
}

/** @param plans index = tier, as `planSlots` gives them */
export function explainTiers(
  layout: StorageLayout,
  { tiers }: Pick<CacheConfig, 'tiers'>,
  plans: readonly TierPlan[],
): TierExplanation[] {
  return plans.map(({ tier, quota, raised, granularity, slots, minSlots }, index) => {
    const poolGroups = (tier === 'device' ? layout.poolGroups : layout.coldPoolGroups).map(
      ({ lifecycleIds, policy, slotBytes }, group): PoolGroupExplanation => ({
        groupIds: lifecycleIds,
        policy,
        slotBytes,
        slots: slots[group],
        minSlots: minSlots[group],
        slotsBytes: slots[group] * slotBytes,
      }),
    );
    const slotsBytes = poolGroups.reduce((bytes, group) => bytes + group.slotsBytes, 0);
    return { tier, askedQuota: tiers[index].quota, quota, raised, granularity, slotsBytes, poolGroups };
  });
}
