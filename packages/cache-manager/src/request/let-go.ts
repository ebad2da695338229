import { NONE } from '../columns.ts';
import { countSolePages, releaseBlock } from './block-pages.ts';
import type { GroupState } from './group-state.ts';
import { markPassed } from './page-uses.ts';
import type { RequestState } from './request-state.ts';

/**
 * Whether a request still has a use for a page that left the window: it waits to be published. With minimal snapshots
 * only the pages that a match needs are, so nothing waits; a rebuilt group keeps its pages of the match until the first
 * commit publishes them.
 */
export function awaitsPublication(state: RequestState, group: GroupState, ordinal: number): boolean {
  if (!group.publishes || !state.mayCommit) return false;
  const { tokensPerBlock, commitMinSnapshot } = state.manager.config;
  if (group.rebuilt && !state.hasCommitted && ordinal * tokensPerBlock < state.matched) return true;
  return !commitMinSnapshot && (ordinal + 1) * tokensPerBlock > state.committed;
}

/** Pages of a group that `letGoStale` would free for others, given a new history. Changes nothing. */
export function countReleasable(state: RequestState, group: GroupState, historyLength: number): number {
  const end = group.rules.staleEnd(group.rules.keptAt(historyLength));
  let count = 0;
  for (let ordinal = Math.max(group.letGoEnd, group.rules.numSinkBlocks); ordinal < end; ordinal++) {
    const page = group.page(ordinal);
    if (page === NONE || awaitsPublication(state, group, ordinal)) continue;
    count += countSolePages(state.manager.storage.pages, group, ordinal);
  }
  return count;
}

/** Lets go of the pages that no later token reads, given the request's history, and stops showing their slots. */
export function letGoStale(state: RequestState, group: GroupState): void {
  if (!group.isAttention || group.rules.windowSize === null) return;
  const { rules } = group;
  const hiddenEnd = Math.min(rules.staleEnd(state.history), state.numBlocks);
  for (let ordinal = Math.max(group.hiddenEnd, rules.numSinkBlocks); ordinal < hiddenEnd; ordinal++)
    group.showIndex(ordinal, NONE);
  group.hiddenEnd = Math.max(group.hiddenEnd, hiddenEnd);

  const keptFrom = Math.min(rules.staleEnd(rules.keptAt(state.history)), state.numBlocks);
  const begin = Math.max(group.letGoEnd, rules.numSinkBlocks);
  if (begin >= keptFrom) return;
  const firstWaiting = letGoOf(state, group, begin, keptFrom);
  if (group.waitingBegin >= group.letGoEnd) group.waitingBegin = firstWaiting;
  group.letGoEnd = keptFrom;
}

/** Lets go of the stale pages that waited to be published and wait no more: after a commit, or when there will be none. */
export function letGoPublished(state: RequestState, group: GroupState): void {
  const begin = Math.max(group.waitingBegin, group.rules.numSinkBlocks);
  if (begin < group.letGoEnd) group.waitingBegin = letGoOf(state, group, begin, group.letGoEnd);
}

/** Lets go of the pages of the stale blocks [begin, end) that do not wait. Returns the first that waits, or `end`. */
function letGoOf(state: RequestState, group: GroupState, begin: number, end: number): number {
  let firstWaiting = end;
  for (let ordinal = begin; ordinal < end; ordinal++) {
    const page = group.page(ordinal);
    if (page === NONE) continue;
    if (awaitsPublication(state, group, ordinal)) {
      firstWaiting = Math.min(firstWaiting, ordinal);
      continue;
    }
    markPassed(state, group, ordinal, page);
    releaseBlock(state, group, ordinal);
  }
  return firstWaiting;
}
