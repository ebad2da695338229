import type { GroupReuseStatus } from '@bufferwise/cache-manager';
import { type LayerGroupId, type Lifecycle, staleRange } from '@bufferwise/core-policy';
import type { ReplayPlan } from './consumer-adapter.ts';

/**
 * The usual plan: use every optional group that is complete, compute the others again, and private ones too.
 *
 * @param neededFrom the first token that a group needs again to be filled, given that it holds nothing of the match
 * @param matched    tokens
 */
export function usualReplay(
  reuseStatus: readonly GroupReuseStatus[],
  matched: number,
  neededFrom: (groupId: LayerGroupId) => number,
): ReplayPlan {
  const optionalReuseGroups: LayerGroupId[] = [];
  const rebuiltGroups: LayerGroupId[] = [];
  let from = matched;
  for (const { groupId, policy, complete } of reuseStatus) {
    if (policy === 'required' || matched === 0) continue;
    if (policy === 'optional' && complete) {
      optionalReuseGroups.push(groupId);
      continue;
    }
    if (policy === 'optional') rebuiltGroups.push(groupId);
    from = Math.min(from, neededFrom(groupId));
  }
  return { optionalReuseGroups, rebuiltGroups, from };
}

/**
 * The first token that a group needs again when it is to hold all that a request continuing at `matched` reads: the beginning of
 * the first block that is live there, and 0 for recurrent state.
 */
export function firstLiveToken(lifecycle: Lifecycle, matched: number, tokensPerBlock: number): number {
  if (lifecycle.kind === 'ssm') return 0;
  const { begin, end } = staleRange(lifecycle, matched, tokensPerBlock);
  return begin > 0 ? 0 : Math.min(matched, end * tokensPerBlock);
}

/** Groups that hold what was matched when a request resumed with a plan: required ones, and the selected. */
export function reusedGroups(
  reuseStatus: readonly GroupReuseStatus[],
  plan: ReplayPlan,
  matched: number,
): ReadonlySet<LayerGroupId> {
  if (matched === 0) return new Set();
  const required = reuseStatus.filter(({ policy }) => policy === 'required').map(({ groupId }) => groupId);
  return new Set([...required, ...plan.optionalReuseGroups]);
}
