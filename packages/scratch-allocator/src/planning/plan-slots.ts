import { type CacheConfig, StateError, type TierConfig } from '@bufferwise/core-policy';
import { roundUp } from '../layout/rounding.ts';
import type { StorageLayout } from '../layout/storage-layout.ts';
import { distributeGrains, type GrainDemand } from './distribute-grains.ts';
import { grainsFor } from './grains.ts';
import { initialWeights } from './initial-weights.ts';
import { minDeviceSlots } from './min-slots.ts';
import { tierGranularity } from './tier-granularity.ts';

/** What of a config decides how many slots there are. */
export type SlotPlanConfig = Pick<
  CacheConfig,
  'tiers' | 'initialPoolRatio' | 'typicalStep' | 'constraints' | 'swaScratchReuse' | 'maxUtilForResume' | 'commitMinSnapshot'
>;

/** How one tier spends its quota. Lists have an entry for each pool group: of `poolGroups` on the device, of `coldPoolGroups` elsewhere. */
export interface TierPlan {
  tier: TierConfig['tier'];
  /** Bytes of a grain, the step in which pools grow. */
  granularity: number;
  /** Bytes: what was asked for, rounded up to whole grains, or what the minimum slots take if that is more. */
  quota: number;
  /** Whether the minimum slots took more than was asked for. */
  raised: boolean;
  /** Slots below which a pool group must not fall. */
  minSlots: readonly number[];
  slots: readonly number[];
  /** Share of each pool group in the bytes of all slots; together 1. */
  ratio: readonly number[];
}

/** What to plan instead of what the config says. */
export interface TierPlanOptions {
  /** Bytes. */
  quota?: number;
  /** Bytes wished for by each pool group of the tier, relative to each other; >= 0, at least one above 0. */
  weights?: readonly number[];
}

/**
 * Slots of every pool group in every tier of a config.
 *
 * @returns index = tier
 */
export function planSlots(layout: StorageLayout, config: SlotPlanConfig): TierPlan[] {
  return config.tiers.map((_, tier) => planTier(layout, config, tier));
}

/**
 * Slots of every pool group in one tier, for a quota or weights that may have changed since.
 *
 * @param tier index into `config.tiers`
 * @throws {StateError} `unknown-tier`, `invalid-quota` or `invalid-pool-weights`
 */
export function planTier(layout: StorageLayout, config: SlotPlanConfig, tier: number, options: TierPlanOptions = {}): TierPlan {
  const tierConfig = config.tiers[tier];
  if (tierConfig === undefined) throw unknownTier(tier, config.tiers.length);
  const kind = tierConfig.tier;
  const quota = options.quota ?? tierConfig.quota;
  if (!(Number.isSafeInteger(quota) && quota > 0)) throw invalidQuota(quota);
  const granularity = tierGranularity({ tier: kind, quota });
  const planned = kind === 'device' ? deviceDemands(layout, config, granularity) : coldDemands(layout, config);
  const demands = options.weights ? reweighed(planned, options.weights) : planned;
  const asked = roundUp(quota, granularity);
  const leastGrains = demands.reduce((sum, { minSlots, slotSizes }) => sum + grainsFor(minSlots, slotSizes, granularity), 0);
  const granted = Math.max(asked, leastGrains * granularity);
  const slots = distributeGrains(granted / granularity, demands, granularity);
  return {
    tier: kind,
    granularity,
    quota: granted,
    raised: granted > asked,
    minSlots: demands.map(({ minSlots }) => minSlots),
    slots,
    ratio: shares(slots.map((n, group) => n * sumOf(demands[group].slotSizes))),
  };
}

function deviceDemands(layout: StorageLayout, config: SlotPlanConfig, granularity: number): GrainDemand[] {
  const weights = initialWeights(layout, config, granularity);
  const minSlots = minDeviceSlots(layout, config);
  return layout.poolGroups.map(({ pools, lifecycleIds }, group) => ({
    slotSizes: pools.map(({ slotBytes }) => slotBytes),
    weight: lifecycleIds.reduce((sum, id) => sum + weights[id], 0),
    minSlots: minSlots[group],
    exactMinimum: config.initialPoolRatio !== null && lifecycleIds.every((id) => layout.lifecycles.get(id).kind === 'ssm'),
  }));
}

/** A page takes as many bytes in a colder tier as on the device, so the device's weights keep the proportions of slots. */
function coldDemands(layout: StorageLayout, config: SlotPlanConfig): GrainDemand[] {
  const weights = initialWeights(layout, config, tierGranularity(config.tiers[0]));
  return layout.coldPoolGroups.map(({ slotBytes, lifecycleIds }) => ({
    slotSizes: [slotBytes],
    weight: lifecycleIds.reduce((sum, id) => sum + weights[id], 0),
    minSlots: 1,
    exactMinimum: false,
  }));
}

function reweighed(demands: readonly GrainDemand[], weights: readonly number[]): GrainDemand[] {
  const valid = weights.length === demands.length && weights.every((weight) => weight >= 0) && Number.isFinite(sumOf(weights));
  if (!valid || (demands.length > 0 && sumOf(weights) === 0)) throw invalidWeights(weights, demands.length);
  return demands.map((demand, group) => ({ ...demand, weight: weights[group], exactMinimum: false }));
}

function shares(bytes: readonly number[]): number[] {
  const total = sumOf(bytes);
  return bytes.map((part) => part / total);
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function unknownTier(tier: number, tiers: number): StateError {
  return new StateError('unknown-tier', `There is no tier ${tier}: the config has ${tiers}, numbered from 0, warm to cold.`);
}

function invalidQuota(quota: number): StateError {
  return new StateError('invalid-quota', `A quota is a whole number of bytes above 0, not ${quota}.`);
}

function invalidWeights(weights: readonly number[], groups: number): StateError {
  const message = `The tier needs ${groups} weights, one for each pool group, none below 0 and one above; got [${weights.join(', ')}].`;
  return new StateError('invalid-pool-weights', message);
}
