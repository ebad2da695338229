import type { LifecycleId } from '@bufferwise/core-policy';
import { planTier, requestPages } from '@bufferwise/scratch-allocator';
import { NONE } from '../columns.ts';
import type { ManagerState } from '../manager-state.ts';
import type { GroupState } from '../request/group-state.ts';
import type { RequestState } from '../request/request-state.ts';

/**
 * Slots that each pool group of a tier must keep, so that nobody waits for ever: the planned minimum, what is in use and cannot
 * leave, and on the device all that any one open request needs there, be it in a colder tier now, with room for its prompt and a
 * block more.
 */
export function slotFloors(manager: ManagerState, tier: number): number[] {
  const { storage, layout, config, needs, open } = manager;
  const { minSlots } = planTier(layout, config, tier, { quota: needs[tier].quota });
  const floors = storage.tiers[tier].groups.map(({ slots, numLeaving }, group) =>
    Math.max(minSlots[group], slots.slots - slots.free - numLeaving),
  );
  if (tier > 0) return floors;
  for (const request of open) {
    const needed = storage.poolGroups.map(() => 0);
    for (const group of request.groups) needed[group.rules.poolGroup] += pagesOf(request, group);
    needed.forEach((count, group) => {
      floors[group] = Math.max(floors[group], count);
    });
  }
  return floors;
}

/** Slots that a request may need in a group to finish its prompt and write on. */
function pagesOf(request: RequestState, group: GroupState): number {
  const { beamWidth, expectedPromptLength } = request;
  const { layout, config } = request.manager;
  const { id } = group.rules;
  if (!group.isAttention) return beamWidth;
  let named = group.scratchSlots.length;
  for (let beam = 0; beam < beamWidth; beam++) {
    for (let ordinal = beam === 0 ? 0 : group.sharedEnd; ordinal < request.numBlocks; ordinal++) {
      if (group.page(ordinal, beam) !== NONE) named++;
    }
  }
  const prompt = Number.isFinite(expectedPromptLength)
    ? requestPages(layout, id as LifecycleId, expectedPromptLength, config)
    : 0;
  return Math.max(named, prompt) + beamWidth;
}
