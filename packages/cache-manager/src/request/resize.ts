import { divUp, StateError } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import { DEFAULT_PRIORITY } from '../eviction/lru-queue.ts';
import type { GroupState } from './group-state.ts';
import { countReleasable, letGoStale } from './let-go.ts';
import type { RequestState } from './request-state.ts';
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
    return true;
  }
  const { demand, config, storage } = state.manager;
  const oldBlocks = state.numBlocks;
  const newBlocks = divUp(capacity, config.tokensPerBlock);
  const priorities: number[] | null = state.hasPriority ? [] : null;
  demand.reset();
  for (const group of state.groups) {
    if (!group.isAttention) continue;
    let wanted = 0;
    for (let ordinal = oldBlocks; ordinal < newBlocks; ordinal++) {
      if (!needsPage(state, group, ordinal, capacity, history)) continue;
      wanted++;
      priorities?.push(state.priorityOf(ordinal, group));
    }
    demand.want(group.rules.poolGroup, wanted);
    demand.giveBack(group.rules.poolGroup, countReleasable(state, group, history) + countDropped(state, group, oldBlocks, newBlocks));
    addScratchDemand(state, group, history, capacity);
  }
  if (!demand.fits()) return false;

  for (const group of state.groups) {
    if (!group.isAttention) continue;
    dropBlocks(state, group, oldBlocks, newBlocks);
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
    const indices = group.indices(newBlocks);
    for (let ordinal = oldBlocks; ordinal < newBlocks; ordinal++) {
      if (!needsPage(state, group, ordinal, capacity, history)) continue;
      const page = storage.createHeld(group.rules.id, priorities === null ? DEFAULT_PRIORITY : priorities[next++]);
      group.setPage(ordinal, page);
      indices[ordinal] = group.rules.isLive(ordinal, history) ? storage.pages.slot[page] : NONE;
    }
  }
  return true;
}

/** Raises the history as a commit does: never needs a page, so it cannot fail. */
export function raiseHistory(state: RequestState, history: number): void {
  state.history = history;
  for (const group of state.groups) {
    if (!group.isAttention) continue;
    trimScratch(state, group, history, state.capacity);
    takeScratch(state, group, history, state.capacity);
    letGoStale(state, group);
  }
}

function checkResize(state: RequestState, capacity: number, history: number): void {
  if (state.status !== 'active') throw new StateError(`resize-${state.status}`, `resize: the request is ${state.status}; resume it first`);
  if (state.ended) throw new StateError('resize-ended', 'resize: the last commit had `end: true`, its pages were moved into the tree; close the request');
  if (!Number.isSafeInteger(capacity) || capacity < 0 || capacity > 0x7fffffff) {
    throw new StateError('invalid-capacity', `resize: capacity is ${capacity}; it must be a whole number of tokens from 0 to 2^31 - 1`);
  }
  if (!Number.isSafeInteger(history)) {
    throw new StateError('invalid-history', `resize: history length is ${history}; it must be a whole number of tokens`);
  }
  if (history < state.history) {
    throw new StateError('history-lowered', `resize: history length ${history} is below the present ${state.history}; written tokens cannot be unwritten`);
  }
  if (history > capacity) {
    throw new StateError('history-beyond-capacity', `resize: history length ${history} is above the capacity ${capacity}; raise the capacity with it`);
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
  if (state.manager.config.swaScratchReuse !== null && capacity !== state.capacity) return false;
  if (history === state.history) return true;
  for (const group of state.groups) {
    if (group.rules.windowSize === null) continue;
    if (group.scratchBegin < group.scratchEnd) return false;
    if (group.rules.staleEnd(history) > group.hiddenEnd && group.rules.staleEnd(history) > group.rules.numSinkBlocks) return false;
    if (group.rules.staleEnd(group.rules.keptAt(history)) > Math.max(group.letGoEnd, group.rules.numSinkBlocks)) return false;
  }
  return true;
}

/** Whether a new block gets a page of its own. */
function needsPage(state: RequestState, group: GroupState, ordinal: number, capacity: number, history: number): boolean {
  if (!group.rules.isLive(ordinal, group.rules.keptAt(history))) return false;
  return ordinal < scratchBlocksBegin(state, group, history, capacity) || ordinal >= scratchBlocksEnd(state, group, history, capacity);
}

function countDropped(state: RequestState, group: GroupState, oldBlocks: number, newBlocks: number): number {
  let count = 0;
  for (let ordinal = newBlocks; ordinal < oldBlocks; ordinal++) {
    const page = group.page(ordinal);
    if (page !== NONE && state.manager.storage.pages.holds[page] === 1) count++;
  }
  return count;
}

function dropBlocks(state: RequestState, group: GroupState, oldBlocks: number, newBlocks: number): void {
  for (let ordinal = oldBlocks - 1; ordinal >= newBlocks; ordinal--) {
    const page = group.page(ordinal);
    if (page === NONE) continue;
    group.setPage(ordinal, NONE);
    group.showIndex(ordinal, NONE);
    state.manager.storage.release(page);
  }
}
