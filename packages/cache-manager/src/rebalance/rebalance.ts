import { StateError } from '@bufferwise/core-policy';
import type { ManagerState } from '../manager-state.ts';
import { changeSlots } from '../tiers/resize-tier.ts';
import { slotFloors } from './floors.ts';
import { type GroupNeeds, type Move, type MoveReason, planMove } from './plan-move.ts';

/** What was seen of one pool group of a tier since its sizes last changed, and how it would be changed. */
export interface PoolGroupNeeds {
  /** Slots there are. */
  readonly slots: number;
  /** Slots there would be. */
  readonly proposedSlots: number;
  /** Slots below which it does not fall: the planned minimum, what is in use, and what any open request needs. */
  readonly floor: number;
  /** The most slots that requests had to themselves at a time. */
  readonly peakUse: number;
  /** Slots beyond those there are that a request wanted in vain, at most. */
  readonly short: number;
  /** Slots that were never in use. */
  readonly idle: number;
  /** Pages that left the tier to make room. */
  readonly evicted: number;
  /** What further bytes would have saved, by steps of `stepBytes`: see `RebalancePlan.unit`. */
  readonly gains: readonly number[];
}

/** How the bytes of a tier would be divided anew, and why. Plain data of the moment. */
export interface RebalancePlan {
  readonly tier: number;
  /** Whether `rebalance` would move anything. */
  readonly needed: boolean;
  /**
   * `requests`: a pool group had no room for a request. What one evicted is wanted again, and `idle`: another has slots that nobody
   * used; or `misses`: it would have saved more than another would lose. `balanced`: as far as was seen, no move is worth it.
   */
  readonly reason: MoveReason | 'balanced';
  /** What `gain`, `loss` and `gains` count: prompt tokens computed again, or bytes brought back from a colder tier. */
  readonly unit: 'tokens' | 'bytes';
  /** Bytes of one step of `gains`. */
  readonly stepBytes: number;
  /** Bytes that would go from one pool group of the tier to another; null when none would. */
  readonly move: {
    readonly from: number;
    readonly to: number;
    readonly bytes: number;
    /** What the taker would have saved, and the giver lost, while they were watched. */
    readonly gain: number;
    readonly loss: number;
  } | null;
  /** Index = pool group of the tier. */
  readonly groups: readonly PoolGroupNeeds[];
}

/** @throws {StateError} `unknown-tier` */
export function rebalancePlan(manager: ManagerState, tier: number): RebalancePlan {
  const { rules, groups, move } = plan(manager, tier);
  return {
    tier,
    needed: move !== null,
    reason: move?.reason ?? 'balanced',
    unit: manager.needs[tier].passesDown ? 'bytes' : 'tokens',
    stepBytes: rules.stepGrains * rules.granularity,
    move: move && { from: move.from, to: move.to, bytes: move.grains * rules.granularity, gain: move.gain, loss: move.loss },
    groups: groups.map(({ slots, floor, peakUse, short, idle, evicted, gains }, group) => ({
      slots,
      proposedSlots: move?.slots[group] ?? slots,
      floor,
      peakUse,
      short,
      idle,
      evicted,
      gains,
    })),
  };
}

/** Whether `rebalance` would move anything. Cheap as long as nothing that was evicted was asked for again. */
export function needsRebalance(manager: ManagerState): boolean {
  return manager.needs.some((needs, tier) => needs.mayMove && plan(manager, tier).move !== null);
}

/**
 * Makes in every tier the move that its plan has. Requests may be open, and active; the rules of a resize of the tier hold.
 *
 * @returns whether anything was moved. A tier whose device refuses the memory, or that has no room for what must leave, stays as
 *   it is, and what was seen of it is forgotten, so that it is not tried again at once
 */
export function rebalance(manager: ManagerState): Promise<boolean> {
  return manager.turns.take(async () => {
    let moved = false;
    for (let tier = 0; tier < manager.needs.length; tier++) {
      if (manager.closed || (tier === 0 && manager.storage.device === null) || !manager.needs[tier].mayMove) continue;
      const { move } = plan(manager, tier);
      if (move !== null && (await makeMove(manager, tier, move))) moved = true;
    }
    return moved;
  });
}

/** Carries out a move, within a turn. False when it cannot be had; nothing has changed then but what may be evicted any time. */
export async function makeMove(manager: ManagerState, tier: number, { from, to, slots }: Move): Promise<boolean> {
  const needs = manager.needs[tier];
  // What the giver evicts for it is remembered: should it be missed, the move is taken back.
  needs.restart();
  try {
    if (!(await changeSlots(manager, tier, slots))) return false;
  } catch {
    // A device that can never serve a pool of this size refuses as one does that has no memory now: nobody asked for this size.
    return false;
  }
  needs.moved(from, to);
  return true;
}

function plan(manager: ManagerState, tier: number) {
  const needs = manager.needs[tier];
  if (needs === undefined) {
    const message = `there is no tier ${tier}; tiers run from 0, the device, to ${manager.storage.lastTier}`;
    throw new StateError('unknown-tier', message);
  }
  const rules = needs.rules();
  const groups: GroupNeeds[] = needs.groupNeeds(slotFloors(manager, tier));
  return { rules, groups, move: needs.mayMove ? planMove(groups, rules) : null };
}
