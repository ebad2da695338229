import { roundHalfEven } from '../layout/rounding.ts';
import { grainsFor, maxSlotsIn } from './grains.ts';

/** What one pool group asks of a tier. */
export interface GrainDemand {
  /** Bytes of a slot in each pool of the group. */
  slotSizes: readonly number[];
  /** Share of the bytes wished for, relative to the other groups; >= 0, and above 0 for at least one group. */
  weight: number;
  /** Slots it gets in any case, >= 1. */
  minSlots: number;
  /** Whether a group that wishes for no more than its minimum gets exactly that, also where its grains would hold more slots. */
  exactMinimum: boolean;
}

/**
 * Shares out the grains of a tier.
 *
 * Groups take their share from the smallest weight to the largest, and what does not make up a slot goes on to the next. A group
 * whose share is not above its minimum is pinned there, and the others share the rest anew, until no more group has to be pinned.
 *
 * @param grains at least the sum of what the minima take
 * @param granularity bytes of a grain
 * @returns slots of each group
 */
export function distributeGrains(grains: number, demands: readonly GrainDemand[], granularity: number): number[] {
  const slots = new Array<number>(demands.length).fill(0);
  const byWeight = demands.map((_, group) => group).sort((a, b) => demands[a].weight - demands[b].weight);
  let active = byWeight;
  let budget = grains;
  for (;;) {
    const unconstrained = shareOut(budget, active, demands, granularity, slots);
    if (unconstrained.length === active.length) return slots;
    for (const group of active) {
      if (unconstrained.includes(group)) continue;
      const { slotSizes, minSlots, exactMinimum } = demands[group];
      const pinned = grainsFor(minSlots, slotSizes, granularity);
      slots[group] = exactMinimum ? minSlots : maxSlotsIn(pinned, slotSizes, granularity);
      budget -= pinned;
    }
    active = unconstrained;
  }
}

/** One round over the active groups. Writes their slots, and tells which of them got more than their minimum. */
function shareOut(
  budget: number,
  active: readonly number[],
  demands: readonly GrainDemand[],
  granularity: number,
  slots: number[],
): number[] {
  let grainsLeft = budget;
  return active.filter((group, position) => {
    const { slotSizes, weight, minSlots, exactMinimum } = demands[group];
    const weightLeft = active.slice(position).reduce((sum, other) => sum + demands[other].weight, 0);
    const share = roundHalfEven((grainsLeft * weight) / weightLeft);
    slots[group] = maxSlotsIn(share, slotSizes, granularity);
    grainsLeft -= grainsFor(slots[group], slotSizes, granularity);
    if (exactMinimum && share <= grainsFor(minSlots, slotSizes, granularity)) return false;
    return slots[group] > minSlots;
  });
}
