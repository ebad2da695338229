import { divUp, StateError } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import { PagesLostError } from '../errors/pages-lost-error.ts';
import { DEFAULT_PRIORITY } from '../eviction/lru-queue.ts';
import type { PageId } from '../page/page-table.ts';
import { Boarding } from '../tiers/boarding.ts';
import { beginAgain } from './begin-again.ts';
import { forEachPage, letGo } from './block-pages.ts';
import { forEachLiveBlock } from './claim.ts';
import { createEmptyPages, createFilledPages, installPage, type NewPage } from './first-pages.ts';
import type { GroupState } from './group-state.ts';
import { letGoStale } from './let-go.ts';
import { losePages } from './lose-pages.ts';
import { countReuse } from './page-uses.ts';
import type { RequestState } from './request-state.ts';
import { addScratchDemand, numScratchSlots, takeScratch } from './scratch.ts';
import { type ResumeOptions, readSelection, type Selection } from './selection.ts';

/**
 * Takes a suspended request onto the device, with all that it holds in colder tiers.
 *
 * @returns false when there is no room now; nothing has changed then, every claim is still held
 * @throws {ReuseSelectionError} on a bad choice, {StateError} when the request is not suspended; nothing has changed
 * @throws {PagesLostError} once, when pages of the request were lost
 */
export async function resume(state: RequestState, options: ResumeOptions): Promise<boolean> {
  checkSuspended(state, 'resume');
  tellLoss(state, 'resume');
  const selection = readSelection(state, options);
  const { beginnings } = state;
  const { storage, turns } = state.manager;
  await storage.ready();
  checkSame(state, beginnings, 'resume');
  const plan = planResume(state, selection);
  if (waitsForPages(state, plan)) return turns.take(() => resumeLater(state, selection, beginnings));
  if (!admits(state, plan, selection)) {
    return fitsInRounds(state) && turns.take(() => resumeLater(state, selection, beginnings));
  }
  // Where held pages may leave the device, what the request needs must not make room for the rest.
  const boarding = storage.passesDown(0) ? new Boarding(storage, 0) : null;
  if (boarding !== null) pinAll(plan, boarding);
  try {
    // All at once, unless it takes the slots of declined claims: these are let go when the device has not refused.
    const declines = state.groups.some((group) => group.complete && isDeclined(state, group, selection));
    if (!declines || admits(state, plan, selection, false)) state.manager.demand.makeRoom();
    activate(state, plan, selection);
  } finally {
    boarding?.end();
  }
  return true;
}

/** @throws {StateError} unless the request is suspended and there is a device */
export function checkSuspended(state: RequestState, call: 'resume' | 'prefetch'): void {
  const { status, manager } = state;
  if (status !== 'suspended') {
    const wayOut = call === 'resume' ? 'resumed' : 'prefetched';
    throw new StateError(`${call}-${status}`, `${call}: the request is ${status}; only a suspended one can be ${wayOut}`);
  }
  if (manager.storage.device !== null) return;
  throw new StateError('device-lost', `${call}: the device was lost; give the manager another with restoreDevice first`);
}

/** The same, for a request that was waited for: it is still suspended, and has not begun again meanwhile. */
export function checkSame(state: RequestState, beginnings: number, call: 'resume' | 'prefetch'): void {
  checkSuspended(state, call);
  if (state.beginnings !== beginnings) tellLoss(state, call);
}

function tellLoss(state: RequestState, call: string): void {
  if (!state.lossUntold) return;
  state.lossUntold = false;
  throw new PagesLostError(call, state.history, Math.max(0, state.reached - state.history));
}

/** What a resume needs on the device. */
interface ResumePlan {
  /** Pages that the request goes on with as they are, each once. */
  used: PageId[];
  /** Pages that it gets a copy of, each once. */
  sources: PageId[];
  created: NewPage[];
}

async function resumeLater(state: RequestState, selection: Selection, beginnings: number): Promise<boolean> {
  const { landings } = state.manager.storage;
  checkSame(state, beginnings, 'resume');
  let plan = planResume(state, selection);
  for (let waited = false; !admits(state, plan, selection); plan = planResume(state, selection)) {
    if (fitsInRounds(state)) {
      const boarding = new Boarding(state.manager.storage, 0);
      pinAll(plan, boarding);
      state.manager.demand.makeSomeRoom();
      boarding.end();
    } else {
      // What is under way to a colder tier may leave its place to others once it is there. Waited for once: others go on.
      if (waited || !landings.any) return false;
      waited = true;
    }
    await landings.all();
    checkSame(state, beginnings, 'resume');
  }
  // Declined claims are let go before the wait only where nothing else makes room.
  const gaveUp = !admits(state, plan, selection, false);
  if (gaveUp) for (const group of state.groups) if (isDeclined(state, group, selection)) dropClaims(state, group);
  const boarding = board(state, plan);
  try {
    const damaged = await boarding.load();
    const isSame = state.status === 'suspended' && state.beginnings === beginnings;
    if (damaged.length === 0 && isSame && !boarding.isOver) {
      boarding.land();
      activate(state, plan, selection);
      boarding.end();
      return true;
    }
    boarding.cancel();
    losePages(state.manager, damaged);
  } catch (error) {
    boarding.cancel();
    if (gaveUp && state.status === 'suspended' && state.beginnings === beginnings) beginAgain(state);
    throw error;
  }
  checkSame(state, beginnings, 'resume');
  // The device was lost and replaced meanwhile, which cost this request nothing but the way.
  return resumeLater(state, selection, beginnings);
}

/** Asks for priorities, and changes nothing. */
function planResume(state: RequestState, selection: Selection): ResumePlan {
  const plan: ResumePlan = { used: [], sources: [], created: [] };
  if (state.resumedBefore) planAgain(state, plan);
  else for (const group of state.groups) planFirst(state, group, isReused(group, selection), plan);
  return plan;
}

function planFirst(state: RequestState, group: GroupState, reused: boolean, plan: ResumePlan): void {
  const { matched } = state;
  const { tokensPerBlock } = state.manager.config;
  const create = (ordinal: number, source: PageId, priority: number) => {
    plan.created.push({ group, ordinal, beam: 0, priority, source, page: NONE });
    if (source !== NONE) plan.sources.push(source);
  };
  if (!group.isAttention) {
    create(NONE, reused ? group.statePage : NONE, DEFAULT_PRIORITY);
    return;
  }
  // The partial last block is written on, so it must be the request's own.
  const partial = matched % tokensPerBlock === 0 ? NONE : divUp(matched, tokensPerBlock) - 1;
  forEachLiveBlock(group, matched, (ordinal) => {
    if (reused && ordinal !== partial) plan.used.push(group.page(ordinal));
    else create(ordinal, reused ? group.page(ordinal) : NONE, state.priorityOf(ordinal, group));
  });
}

/** A request that stopped committing while it was suspended may have left to others what it writes again: it gets a copy. */
function planAgain(state: RequestState, plan: ResumePlan): void {
  const { pages } = state.manager.storage;
  const { tokensPerBlock } = state.manager.config;
  // Beams may name the same page.
  const named = state.beamWidth > 1 ? new Set<PageId>() : null;
  forEachPage(state, (page, group, ordinal, beam) => {
    const isNews = named === null || !named.has(page);
    named?.add(page);
    const isWritten = ordinal === NONE || (ordinal + 1) * tokensPerBlock > state.history;
    const isOthers = pages.block[page] !== NONE || pages.holds[page] > 1;
    if (isWritten && isOthers && !state.ended) {
      plan.created.push({ group, ordinal, beam, priority: pages.priority[page], source: page, page: NONE });
      if (isNews) plan.sources.push(page);
    } else if (isNews) plan.used.push(page);
  });
}

/** Whether some page that the request needs is not on the device, or takes part in a move. */
function waitsForPages(state: RequestState, plan: ResumePlan): boolean {
  const { pages } = state.manager.storage;
  const waits = (page: PageId) => pages.tier[page] > 0 || pages.pins[page] > 0;
  return plan.used.some(waits) || plan.sources.some(waits);
}

/** Whether the device has room for the request now. Without `withClaims`, declined claims are no room. */
function admits(state: RequestState, { used, sources, created }: ResumePlan, selection: Selection, withClaims = true): boolean {
  const { demand, storage, config } = state.manager;
  demand.reset();
  for (const { group } of created) demand.want(group.rules.poolGroup, 1);
  for (const page of sources) demand.shield(page);
  for (const page of used) {
    demand.shield(page);
    if (storage.pages.tier[page] > 0) demand.want(storage.groupIn(0, storage.pages.lifecycle[page]), 1);
  }
  for (const group of state.groups) {
    if (state.resumedBefore) addScratchDemand(state, group, state.history, state.capacity);
    else if (withClaims && !isReused(group, selection)) giveBackClaims(state, group);
  }
  return !demand.isSaturated(config.maxUtilForResume) && demand.fits();
}

/** Whether what `admits` has just refused has room once others have left, of whom no more may be under way at a time. */
function fitsInRounds({ manager: { config, demand } }: RequestState): boolean {
  return !demand.isSaturated(config.maxUtilForResume) && demand.fitsInRounds();
}

function pinAll({ used, sources }: ResumePlan, boarding: Boarding): void {
  for (const page of used) boarding.pin(page);
  for (const page of sources) boarding.pin(page);
}

/** Takes all slots before anything is waited for. Only after `admits`, which left what it takes in the demand. */
function board(state: RequestState, plan: ResumePlan): Boarding {
  const { demand, storage } = state.manager;
  const { pages } = storage;
  const boarding = new Boarding(storage, 0);
  pinAll(plan, boarding);
  demand.makeRoom();
  for (const page of plan.used) if (pages.tier[page] > 0) boarding.move(page);
  for (const newPage of plan.created) {
    const { group, priority, source } = newPage;
    if (source !== NONE && pages.tier[source] > 0) newPage.page = boarding.create(group.rules.id, priority, source);
    else boarding.reserve(group.rules.poolGroup, 1);
  }
  if (state.resumedBefore) {
    for (const group of state.groups)
      boarding.reserve(group.rules.poolGroup, numScratchSlots(state, group, state.history, state.capacity));
  }
  return boarding;
}

/**
 * Makes the request active. Everything that it uses is on the device, and pinned, and there is room for the rest. What can
 * throw comes first: the device may refuse the copies.
 */
function activate(state: RequestState, { used, created }: ResumePlan, selection: Selection): void {
  const { recorder, storage } = state.manager;
  createFilledPages(state, created, (group) => isDeclined(state, group, selection));
  if (state.resumedBefore) {
    for (const group of state.groups) takeScratch(state, group, state.history, state.capacity);
    recorder.resumed();
  } else {
    for (const group of state.groups) {
      group.reused = isReused(group, selection);
      group.rebuilt = selection.rebuilt.has(group.rules.id);
      group.publishes = mayPublish(state, group);
      if (!group.reused) dropClaims(state, group);
    }
    countReuse(state);
    createEmptyPages(state, created);
    recorder.started(state);
  }
  for (const page of created) installPage(state, page);
  for (const { page } of created) if (storage.pages.holds[page] === 0) storage.hold(page);
  if (state.beamWidth === 1) for (const page of used) storage.lock(page);
  else lockAllNames(state, created);
  state.status = 'active';
  for (const group of state.groups) {
    if (!state.resumedBefore) letGoStale(state, group);
    if (group.isAttention) group.showPages(storage.pages, state.numBlocks, state.history);
  }
  state.resumedBefore = true;
}

/** Every beam that names a page keeps it on the device. New pages are kept already. */
function lockAllNames(state: RequestState, created: readonly NewPage[]): void {
  const isNew = new Set(created.map(({ page }) => page));
  forEachPage(state, (page) => {
    if (!isNew.has(page)) state.manager.storage.lock(page);
  });
}

/** Whether the request continues from the claimed pages of a group. */
function isReused(group: GroupState, selection: Selection): boolean {
  return group.complete && (group.rules.policy === 'required' || selection.selected.has(group.rules.id));
}

function isDeclined(state: RequestState, group: GroupState, selection: Selection): boolean {
  return !state.resumedBefore && !isReused(group, selection);
}

/** Forgotten work never reaches others: an optional group is published only when its history is known to be whole. */
function mayPublish(state: RequestState, group: GroupState): boolean {
  if (group.rules.policy === 'optional') return state.matched === 0 || group.reused || group.rebuilt;
  return group.rules.policy === 'required';
}

/** Tells the demand which claims become available when this request lets go of them. */
function giveBackClaims(state: RequestState, group: GroupState): void {
  const { demand, storage } = state.manager;
  const giveBack = (page: PageId) => {
    if (page !== NONE && storage.pages.holds[page] === 1) demand.giveBackPage(page);
  };
  giveBack(group.statePage);
  if (group.isAttention) forEachLiveBlock(group, state.matched, (ordinal) => giveBack(group.page(ordinal)));
}

function dropClaims(state: RequestState, group: GroupState): void {
  if (group.statePage !== NONE) letGo(state, group.statePage);
  group.statePage = NONE;
  for (let ordinal = state.numBlocks - 1; ordinal >= 0; ordinal--) {
    const page = group.page(ordinal);
    if (page === NONE) continue;
    group.setPage(ordinal, NONE);
    letGo(state, page);
  }
}
