import { divUp, StateError } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import { DEFAULT_PRIORITY } from '../eviction/lru-queue.ts';
import { countSolePages, releaseBlock } from './block-pages.ts';
import type { GroupState } from './group-state.ts';
import { countReleasable, letGoStale } from './let-go.ts';
import { findQuietReach } from './quiet-step.ts';
import type { RequestState } from './request-state.ts';
import { NUM_RUNS, type ResizePlan } from './resize-plan.ts';
import { addScratchDemand, hasScratch, scratchBlocksBegin, scratchBlocksEnd, takeScratch, trimScratch } from './scratch.ts';

/**
 * Makes room for `capacity` tokens of which `history` are written; pages that left the window are let go.
 *
 * A call that stays inside a block and moves no window only sets the two numbers: no garbage.
 *
 * @returns false when there are not enough pages; nothing has changed then
 * @throws {StateError} on lengths that do not fit, in the wrong state, or when blocks that were scratch would be needed again
 */
export function resize(state: RequestState, capacity: number, history: number): boolean {
  state.manager.checkNotAsking('resize');
  checkResize(state, capacity, history);
  if (isInsideBlock(state, capacity, history)) {
    state.capacity = capacity;
    state.history = history;
    findQuietReach(state);
    return true;
  }
  const { demand, plan, storage } = state.manager;
  plan.prepare(state, capacity, history);
  demand.reset();
  for (const group of state.groups) if (group.isAttention) addDemand(state, group, plan);
  if (!demand.fits()) return false;
  // What can still throw comes before what changes: the caller's function, and tables too long for this process.
  const priorities = state.hasPriority ? askPriorities(state, plan) : null;
  for (const group of state.groups) if (group.isAttention) group.reserve(plan.newBlocks, state.expectedBlocks);
  state.manager.recorder.resized(state, plan);

  for (const group of state.groups) {
    if (!group.isAttention) continue;
    dropPages(state, group, plan.newBlocks, plan.oldBlocks);
    // A block that becomes scratch now was never written, or is written again: its page must not pass for its content.
    dropPages(state, group, plan.scratchBegin(group), plan.oldScratchEnd(group));
    trimScratch(state, group, history, capacity);
  }
  state.capacity = capacity;
  state.history = history;
  for (const group of state.groups) letGoStale(state, group);
  demand.makeRoom();
  let next = 0;
  for (const group of state.groups) {
    if (!group.isAttention) continue;
    takeScratch(state, group, history, capacity);
    const { id, poolGroup } = group.rules;
    const slots = storage.takeSlots(poolGroup, plan.numNewPages(group) * state.beamWidth);
    let nextSlot = 0;
    const sinkEnd = group.rules.staleBegin(history);
    const windowBegin = group.rules.staleEnd(history);
    for (let run = 0; run < NUM_RUNS; run++) {
      const end = plan.runEnd(group, run);
      for (let ordinal = plan.runBegin(group, run); ordinal < end; ordinal++) {
        const priority = priorities === null ? DEFAULT_PRIORITY : priorities[next++];
        const isLive = ordinal < sinkEnd || ordinal >= windowBegin;
        for (let beam = 0; beam < state.beamWidth; beam++) {
          const slot = slots[nextSlot++];
          group.row(beam).put(ordinal, storage.createHeldIn(slot, id, priority), isLive ? slot : NONE);
        }
      }
    }
  }
  findQuietReach(state);
  return true;
}

/** Raises the history as a commit does: never needs a page, so it cannot fail. */
export function raiseHistory(state: RequestState, history: number): void {
  state.history = history;
  for (const group of state.groups) {
    // Without a window nothing becomes stale, and nothing is scratch.
    if (!group.isAttention || group.rules.windowSize === null) continue;
    trimScratch(state, group, history, state.capacity);
    takeScratch(state, group, history, state.capacity);
    letGoStale(state, group);
  }
}

function checkResize(state: RequestState, capacity: number, history: number): void {
  if (state.status !== 'active')
    throw new StateError(`resize-${state.status}`, `resize: the request is ${state.status}; resume it first`);
  if (state.ended)
    throw new StateError(
      'resize-ended',
      'resize: the last commit had `end: true`, its pages were moved into the tree; close the request',
    );
  if (!Number.isSafeInteger(capacity) || capacity < 0 || capacity > 0x7fffffff) {
    throw new StateError(
      'invalid-capacity',
      `resize: capacity is ${capacity}; it must be a whole number of tokens from 0 to 2^31 - 1`,
    );
  }
  if (!Number.isSafeInteger(history)) {
    throw new StateError('invalid-history', `resize: history length is ${history}; it must be a whole number of tokens`);
  }
  if (history < state.history) {
    throw new StateError(
      'history-lowered',
      `resize: history length ${history} is below the present ${state.history}; written tokens cannot be unwritten`,
    );
  }
  if (history > capacity) {
    throw new StateError(
      'history-beyond-capacity',
      `resize: history length ${history} is above the capacity ${capacity}; raise the capacity with it`,
    );
  }
  const rewind = state.manager.config.swaScratchReuse?.maxRewindLen ?? 0;
  if (capacity !== state.capacity && history < state.capacity - rewind && hasScratch(state)) {
    throw new StateError(
      'scratch-in-use',
      `resize: blocks up to token ${state.capacity - rewind} were scratch in this step, so history must reach there before the capacity changes; ` +
        `it is ${history}. A larger swaScratchReuse.maxRewindLen keeps more of the tail in pages`,
    );
  }
}

/** Whether nothing but the two lengths changes. */
function isInsideBlock(state: RequestState, capacity: number, history: number): boolean {
  if (divUp(capacity, state.manager.config.tokensPerBlock) !== state.numBlocks) return false;
  for (const group of state.groups) {
    const { rules } = group;
    if (rules.windowSize === null) continue;
    if (group.scratchBegin < group.scratchEnd) return false;
    if (scratchBlocksBegin(state, group, history, capacity) < scratchBlocksEnd(state, group, history, capacity)) return false;
    if (rules.staleEnd(history) > Math.max(group.hiddenEnd, rules.numSinkBlocks)) return false;
    if (rules.staleEnd(rules.keptAt(history)) > Math.max(group.letGoEnd, rules.numSinkBlocks)) return false;
  }
  return true;
}

function addDemand(state: RequestState, group: GroupState, plan: ResizePlan): void {
  const { demand } = state.manager;
  const { poolGroup } = group.rules;
  demand.want(poolGroup, plan.numNewPages(group) * state.beamWidth);
  demand.giveBack(poolGroup, countReleasable(state, group, plan.history));
  demand.giveBack(poolGroup, countSolePagesIn(state, group, plan.newBlocks, plan.oldBlocks));
  demand.giveBack(poolGroup, countSolePagesIn(state, group, plan.scratchBegin(group), plan.oldScratchEnd(group)));
  addScratchDemand(state, group, plan.history, plan.capacity);
}

/** The priorities of the new pages, in the order in which they are created. */
function askPriorities(state: RequestState, plan: ResizePlan): number[] {
  const priorities: number[] = [];
  for (const group of state.groups) {
    if (!group.isAttention) continue;
    for (let run = 0; run < NUM_RUNS; run++) {
      for (let ordinal = plan.runBegin(group, run); ordinal < plan.runEnd(group, run); ordinal++) {
        priorities.push(state.priorityOf(ordinal, group));
      }
    }
  }
  return priorities;
}

/** Pages of the blocks [begin, end) that nobody else holds: their slots become available when this request lets go. */
function countSolePagesIn(state: RequestState, group: GroupState, begin: number, end: number): number {
  let count = 0;
  for (let ordinal = begin; ordinal < end; ordinal++) count += countSolePages(state.manager.storage.pages, group, ordinal);
  return count;
}

/** Lets go of the pages of the blocks [begin, end), the last first. */
function dropPages(state: RequestState, group: GroupState, begin: number, end: number): void {
  for (let ordinal = end - 1; ordinal >= begin; ordinal--) {
    if (group.page(ordinal) === NONE) continue;
    group.showIndex(ordinal, NONE);
    releaseBlock(state, group, ordinal);
  }
}
