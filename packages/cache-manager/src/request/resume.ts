import { divUp, StateError } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import { DEFAULT_PRIORITY } from '../eviction/lru-queue.ts';
import { forEachLiveBlock } from './claim.ts';
import type { GroupState } from './group-state.ts';
import { letGoStale } from './let-go.ts';
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

/** A page that the first resume creates, as a copy of a claim or fresh. */
interface NewPage {
  group: GroupState;
  /** NONE for recurrent state. */
  ordinal: number;
  priority: number;
}

function resumeFirst(state: RequestState, selection: Selection): boolean {
  const { manager } = state;
  const { demand, storage } = manager;
  const created: NewPage[] = [];
  demand.reset();
  for (const group of state.groups) {
    const reused = isReused(group, selection);
    const before = created.length;
    planPages(state, group, reused, created);
    demand.want(group.rules.poolGroup, created.length - before);
    if (!reused) demand.giveBack(group.rules.poolGroup, countSoleClaims(state, group));
  }
  if (demand.isSaturated(manager.config.maxUtilForResume) || !demand.fits()) return false;

  for (const group of state.groups) {
    group.reused = isReused(group, selection);
    group.rebuilt = selection.rebuilt.has(group.rules.id);
    group.publishes = mayPublish(state, group);
    if (!group.reused) dropClaims(state, group);
  }
  demand.makeRoom();
  const sources = created.map((page) => createPage(state, page));
  manager.commands.execute();
  for (const source of sources) if (source !== NONE) storage.release(source);

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

function planPages(state: RequestState, group: GroupState, reused: boolean, created: NewPage[]): void {
  const { matched } = state;
  if (!group.isAttention) {
    created.push({ group, ordinal: NONE, priority: DEFAULT_PRIORITY });
    return;
  }
  const plan = (ordinal: number) => created.push({ group, ordinal, priority: state.priorityOf(ordinal, group) });
  if (!reused) forEachLiveBlock(group, matched, plan);
  else if (matched % state.manager.config.tokensPerBlock !== 0) plan(divUp(matched, state.manager.config.tokensPerBlock) - 1);
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

/** Creates the page and orders its content. Returns the claim it replaces, to be let go once the copy is on its way, or NONE. */
function createPage(state: RequestState, { group, ordinal, priority }: NewPage): number {
  const { storage, commands } = state.manager;
  const { poolGroup, id } = group.rules;
  const page = storage.createHeld(id, priority);
  const source = group.isAttention ? group.page(ordinal) : group.statePage;
  if (source !== NONE) commands.copy(poolGroup, storage.pages.slot[source], storage.pages.slot[page]);
  else if (!group.isAttention) commands.clear(poolGroup, storage.pages.slot[page]);
  if (group.isAttention) group.setPage(ordinal, page);
  else group.statePage = page;
  return source;
}
