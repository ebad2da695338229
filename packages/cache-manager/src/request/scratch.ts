import { scratchBegin, scratchEnd } from '@bufferwise/core-policy';
import type { GroupState } from './group-state.ts';
import type { RequestState } from './request-state.ts';

const NO_SLOTS = new Int32Array(0);

/** Whether blocks of the request's present step are scratch in some group. */
export function hasScratch(state: RequestState): boolean {
  return state.groups.some((group) => group.scratchBegin < group.scratchEnd);
}

/**
 * Whether blocks of the present step would be scratch in some group if the request had one beam: then it cannot be told which
 * of their pages have been written.
 */
export function isInScratchStep(state: RequestState): boolean {
  const { swaScratchReuse, tokensPerBlock } = state.manager.config;
  if (swaScratchReuse === null) return false;
  const { history, capacity } = state;
  const { maxRewindLen } = swaScratchReuse;
  return state.groups.some(
    ({ rules: { lifecycle } }) =>
      scratchBegin(lifecycle, history, capacity, maxRewindLen, tokensPerBlock) <
      scratchEnd(lifecycle, history, capacity, maxRewindLen, tokensPerBlock),
  );
}

/**
 * First block that is scratch in a step, given history and capacity; equal to `scratchBlocksEnd` when none is. Several beams
 * have no scratch: each decodes a token or two at a time, which scratch is not for.
 */
export function scratchBlocksBegin(state: RequestState, group: GroupState, history: number, capacity: number): number {
  const { swaScratchReuse, tokensPerBlock } = state.manager.config;
  if (swaScratchReuse === null || state.beamWidth > 1) return 0;
  return scratchBegin(group.rules.lifecycle, history, capacity, swaScratchReuse.maxRewindLen, tokensPerBlock);
}

export function scratchBlocksEnd(state: RequestState, group: GroupState, history: number, capacity: number): number {
  const { swaScratchReuse, tokensPerBlock } = state.manager.config;
  if (swaScratchReuse === null || state.beamWidth > 1) return 0;
  return scratchEnd(group.rules.lifecycle, history, capacity, swaScratchReuse.maxRewindLen, tokensPerBlock);
}

/** Adds to the manager's demand what a step needs in scratch slots beyond those the request has, or what it gives back. */
export function addScratchDemand(state: RequestState, group: GroupState, history: number, capacity: number): void {
  const difference = numScratchSlots(state, group, history, capacity) - group.scratchSlots.length;
  if (difference > 0) state.manager.demand.want(group.rules.poolGroup, difference);
  else state.manager.demand.giveBack(group.rules.poolGroup, -difference);
}

/** Gives back the scratch slots that a step does not need. */
export function trimScratch(state: RequestState, group: GroupState, history: number, capacity: number): void {
  const kept = numScratchSlots(state, group, history, capacity);
  const slots = group.scratchSlots;
  if (slots.length <= kept) return;
  for (let i = kept; i < slots.length; i++) state.manager.storage.releaseSlot(group.rules.poolGroup, slots[i]);
  group.setScratch(group.scratchBegin, group.scratchEnd, kept === 0 ? NO_SLOTS : slots.slice(0, kept));
}

/** Brings the request's scratch to what a step needs. The slots that are missing are free. */
export function takeScratch(state: RequestState, group: GroupState, history: number, capacity: number): void {
  const begin = scratchBlocksBegin(state, group, history, capacity);
  const end = scratchBlocksEnd(state, group, history, capacity);
  const needed = numScratchSlots(state, group, history, capacity);
  let slots = group.scratchSlots;
  if (needed > slots.length) {
    const grown = new Int32Array(needed);
    grown.set(slots);
    for (let i = slots.length; i < needed; i++) grown[i] = state.manager.storage.takeSlot(group.rules.poolGroup);
    slots = grown;
  }
  group.setScratch(begin, end, slots);
}

/** Gives back all scratch slots. */
export function dropScratch(state: RequestState, group: GroupState): void {
  for (const slot of group.scratchSlots) state.manager.storage.releaseSlot(group.rules.poolGroup, slot);
  group.setScratch(0, 0, NO_SLOTS);
}

/** Slots that the scratch of a step takes. */
export function numScratchSlots(state: RequestState, group: GroupState, history: number, capacity: number): number {
  const blocks = scratchBlocksEnd(state, group, history, capacity) - scratchBlocksBegin(state, group, history, capacity);
  return blocks === 0 ? 0 : state.manager.layout.scratchSlots(group.rules.id, blocks);
}
