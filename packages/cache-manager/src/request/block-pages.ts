import { NONE } from '../columns.ts';
import type { PageId, PageTable } from '../page/page-table.ts';
import type { GroupState } from './group-state.ts';
import type { RequestState } from './request-state.ts';

/** Names a page: it is held, and stays on the device while the request is active. */
export function takeHold({ manager, status }: RequestState, page: PageId): void {
  if (status === 'active') manager.storage.hold(page);
  else manager.storage.claim(page);
}

/** Names a page no more. */
export function letGo({ manager, status }: RequestState, page: PageId): void {
  if (status === 'active') manager.storage.release(page);
  else manager.storage.unclaim(page);
}

/** Calls `visit` with every page that a request names, once for each name: by group, state first, then block by block. */
export function forEachPage(
  { groups, numBlocks }: RequestState,
  visit: (page: PageId, group: GroupState, ordinal: number, beam: number) => void,
): void {
  for (const group of groups) {
    for (let beam = 0; beam < group.numBeams; beam++) {
      const { statePage } = group.row(beam);
      if (statePage !== NONE) visit(statePage, group, NONE, beam);
    }
    if (!group.isAttention) continue;
    for (let ordinal = 0; ordinal < numBlocks; ordinal++) {
      for (let beam = 0; beam < numRowsOf(group, ordinal); beam++) {
        const page = group.page(ordinal, beam);
        if (page !== NONE) visit(page, group, ordinal, beam);
      }
    }
  }
}

/** Names another page, or none, where `forEachPage` found one. */
export function setPageAt(group: GroupState, ordinal: number, beam: number, page: PageId): void {
  if (group.isAttention) group.setPage(ordinal, page, beam);
  else group.row(beam).statePage = page;
}

/** Rows of a group that name the page of a block: one where the beams share it, else one for each beam. */
export function numRowsOf(group: GroupState, ordinal: number): number {
  return ordinal < group.sharedEnd ? 1 : group.numBeams;
}

/** Pages of a block that nobody but this request holds, over all its beams: their slots become available when it lets go. */
export function countSolePages({ holds }: PageTable, group: GroupState, ordinal: number): number {
  const first = group.page(ordinal);
  if (first === NONE) return 0;
  const numRows = numRowsOf(group, ordinal);
  if (numRows === 1) return holds[first] === 1 ? 1 : 0;
  let count = 0;
  for (let beam = 0; beam < numRows; beam++) {
    const page = group.page(ordinal, beam);
    let named = 0;
    let isFirst = true;
    for (let other = 0; other < numRows; other++) {
      if (group.page(ordinal, other) !== page) continue;
      if (other < beam) isFirst = false;
      named++;
    }
    if (isFirst && holds[page] === named) count++;
  }
  return count;
}

/** Lets go of the pages of a block in every beam. What is shown for it is the caller's affair. */
export function releaseBlock(state: RequestState, group: GroupState, ordinal: number): void {
  for (let beam = numRowsOf(group, ordinal) - 1; beam >= 0; beam--) {
    const page = group.page(ordinal, beam);
    if (page === NONE) continue;
    group.setPage(ordinal, NONE, beam);
    letGo(state, page);
  }
}

/** Lets go of the recurrent state of every beam. */
export function releaseStates(state: RequestState, group: GroupState): void {
  for (let beam = 0; beam < group.numBeams; beam++) {
    const row = group.row(beam);
    if (row.statePage !== NONE) letGo(state, row.statePage);
    row.statePage = NONE;
  }
}

/** Lets go of all pages, tail first. What is shown is the caller's affair. */
export function releasePages(state: RequestState): void {
  const { groups } = state;
  for (let ordinal = state.numBlocks - 1; ordinal >= 0; ordinal--) {
    for (let i = 0; i < groups.length; i++) {
      const group = groups[i];
      if (group.numBeams > 1) {
        releaseBlock(state, group, ordinal);
        continue;
      }
      const page = group.page(ordinal);
      if (page === NONE) continue;
      group.setPage(ordinal, NONE);
      letGo(state, page);
    }
  }
  for (const group of state.groups) releaseStates(state, group);
}
