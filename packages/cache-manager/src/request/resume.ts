import { divUp, StateError } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import { DEFAULT_PRIORITY } from '../eviction/lru-queue.ts';
import type { PageId } from '../page/page-table.ts';
import { forEachLiveBlock } from './claim.ts';
import { createEmptyPages, createFilledPages, installPage, type NewPage } from './first-pages.ts';
import type { GroupState } from './group-state.ts';
import { letGoStale } from './let-go.ts';
import { countReuse } from './page-uses.ts';
import type { RequestState } from './request-state.ts';
import { addScratchDemand, takeScratch } from './scratch.ts';
import { type ResumeOptions, readSelection, type Selection } from './selection.ts';

/**
 * Takes a suspended request onto the device.
 *
 * @returns false when there is no room now; nothing has changed then, every claim is still held
 * @throws {ReuseSelectionError} on a bad choice, {StateError} when the request is not suspended; nothing has changed
 */
export async function resume(state: RequestState, options: ResumeOptions): Promise<boolean> {
  checkSuspended(state);
  const selection = readSelection(state, options);
  await state.manager.storage.ready();
  checkSuspended(state);
  return state.resumedBefore ? resumeAgain(state) : resumeFirst(state, selection);
}

function checkSuspended(state: RequestState): void {
  if (state.status === 'suspended') return;
  throw new StateError(`resume-${state.status}`, `resume: the request is ${state.status}; only a suspended one can be resumed`);
}

function resumeFirst(state: RequestState, selection: Selection): boolean {
  const { manager } = state;
  const { demand, storage } = manager;
  const planned: NewPage[] = [];
  demand.reset();
  for (const group of state.groups) {
    const reused = isReused(group, selection);
    const before = planned.length;
    planPages(state, group, reused, planned);
    demand.want(group.rules.poolGroup, planned.length - before);
    if (!reused) demand.giveBack(group.rules.poolGroup, countSoleClaims(state, group));
  }
  if (demand.isSaturated(manager.config.maxUtilForResume) || !demand.fits()) return false;

  const isDeclined = (group: GroupState) => !isReused(group, selection);
  createFilledPages(state, planned, isDeclined);
  for (const group of state.groups) {
    group.reused = isReused(group, selection);
    group.rebuilt = selection.rebuilt.has(group.rules.id);
    group.publishes = mayPublish(state, group);
    if (!group.reused) dropClaims(state, group);
  }
  countReuse(state);
  createEmptyPages(state, planned);
  manager.recorder.started(state);
  for (const page of planned) installPage(state, page);

  state.status = 'active';
  state.resumedBefore = true;
  for (const group of state.groups) {
    letGoStale(state, group);
    if (group.isAttention) group.showPages(storage.pages, state.numBlocks, state.history);
  }
  return true;
}

function resumeAgain(state: RequestState): boolean {
  const { manager } = state;
  const { demand } = manager;
  demand.reset();
  for (const group of state.groups) addScratchDemand(state, group, state.history, state.capacity);
  if (demand.isSaturated(manager.config.maxUtilForResume) || !demand.fits()) return false;

  demand.makeRoom();
  for (const group of state.groups) {
    takeScratch(state, group, state.history, state.capacity);
    if (group.isAttention) group.showPages(manager.storage.pages, state.numBlocks, state.history);
  }
  state.status = 'active';
  manager.recorder.resumed();
  return true;
}

/** Whether the request continues from the claimed pages of a group. */
function isReused(group: GroupState, selection: Selection): boolean {
  return group.complete && (group.rules.policy === 'required' || selection.selected.has(group.rules.id));
}

/** Forgotten work never reaches others: an optional group is published only when its history is known to be whole. */
function mayPublish(state: RequestState, group: GroupState): boolean {
  if (group.rules.policy === 'optional') return state.matched === 0 || group.reused || group.rebuilt;
  return group.rules.policy === 'required';
}

function planPages(state: RequestState, group: GroupState, reused: boolean, planned: NewPage[]): void {
  const { matched } = state;
  const { tokensPerBlock } = state.manager.config;
  const plan = (ordinal: number, source: PageId, priority: number) =>
    planned.push({ group, ordinal, priority, source, page: NONE });
  if (!group.isAttention) plan(NONE, reused ? group.statePage : NONE, DEFAULT_PRIORITY);
  else if (!reused) forEachLiveBlock(group, matched, (ordinal) => plan(ordinal, NONE, state.priorityOf(ordinal, group)));
  else if (matched % tokensPerBlock !== 0) {
    const ordinal = divUp(matched, tokensPerBlock) - 1;
    plan(ordinal, group.page(ordinal), state.priorityOf(ordinal, group));
  }
}

/** Claims whose slots become available when this request lets go of them. */
function countSoleClaims(state: RequestState, group: GroupState): number {
  const { holds } = state.manager.storage.pages;
  let count = group.statePage !== NONE && holds[group.statePage] === 1 ? 1 : 0;
  forEachLiveBlock(group, state.matched, (ordinal) => {
    const page = group.page(ordinal);
    if (page !== NONE && holds[page] === 1) count++;
  });
  return count;
}

function dropClaims(state: RequestState, group: GroupState): void {
  const { storage } = state.manager;
  if (group.statePage !== NONE) storage.release(group.statePage);
  group.statePage = NONE;
  for (let ordinal = state.numBlocks - 1; ordinal >= 0; ordinal--) {
    const page = group.page(ordinal);
    if (page === NONE) continue;
    group.setPage(ordinal, NONE);
    storage.release(page);
  }
}
