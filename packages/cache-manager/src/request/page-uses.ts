import { NONE } from '../columns.ts';
import { ANSWER, PASSED, PROMPT_BODY, PROMPT_END, pageUse } from '../eviction/page-use.ts';
import type { ManagerState } from '../manager-state.ts';
import type { PageId } from '../page/page-table.ts';
import { noteMissed } from '../rebalance/note-missed.ts';
import type { BlockId } from '../tree/block-table.ts';
import type { GroupRules } from './group-rules.ts';
import type { GroupState } from './group-state.ts';
import type { RequestState } from './request-state.ts';

/**
 * Tokens before the end of a prompt, or of what others share of it, that count as near that end: a retry, the next turn or a
 * sibling may leave the path a little before it.
 */
const NEAR_END = 1024;

/** Asks whether what a request lists for the first time was evicted not long ago. */
export function markListed(state: RequestState, group: GroupState, ordinal: number, block: BlockId): void {
  // That a path comes back says nothing of windows and snapshots: few of them would have been of use.
  if (group.rules.windowSize !== null) return;
  const { storage, tree } = state.manager;
  noteMissed(state.manager, group.rules, block, group.rules.tokensPerBlock);
  if (storage.wanted(group.rules.id, tree.blocks.pathHash[block])) state.returnedEnd = ordinal + 1;
}

/**
 * Tells what a match of `matched` tokens would have used, had it been there: where the path goes on behind the match, the window
 * before its end, and the last snapshot.
 */
export function countMissed(manager: ManagerState, matched: number): void {
  const { matcher, storage, tree, config, groups } = manager;
  const numBlocks = Math.floor(matcher.depths.path / config.tokensPerBlock);
  const firstMissed = Math.floor(matched / config.tokensPerBlock);
  const ask = (group: GroupRules, ordinal: number) => storage.wanted(group.id, tree.blocks.pathHash[matcher.blockAt(ordinal)]);
  for (const group of groups) {
    if (group.policy !== 'required') continue;
    if (group.kind === 'ssm') {
      for (let ordinal = numBlocks - 1; ordinal >= firstMissed && !ask(group, ordinal); ordinal--);
    } else if (group.windowSize !== null) {
      const begin = Math.max(firstMissed, group.staleEnd(numBlocks * config.tokensPerBlock));
      for (let ordinal = begin; ordinal < numBlocks; ordinal++) ask(group, ordinal);
    }
  }
}

/** Notes what a request that closes used its attention pages for. */
export function markUses(state: RequestState): void {
  const { pages } = state.manager.storage;
  const { tokensPerBlock } = state.manager.config;
  const length = answerLength(state);
  const body = pageUse(PROMPT_BODY, length);
  // Where a match has to end at a window or a snapshot, what comes before that end is of use with it or not at all.
  const end = state.groups.some(({ rules }) => needsEnd(rules)) ? body : pageUse(PROMPT_END, length);
  const answer = pageUse(ANSWER, length);
  const promptEnd = promptEndOf(state);
  const answerBegin = Math.floor(promptEnd / tokensPerBlock);
  const endBegin = Math.ceil((promptEnd - NEAR_END) / tokensPerBlock) - 1;
  for (const group of state.groups) {
    const row = group.row(0);
    // Only a sample of blocks is remembered once they are gone. Where one was, those before it were.
    const returnedEnd = group.rules.windowSize === null ? state.returnedEnd : 0;
    for (let ordinal = 0; ordinal < state.numBlocks; ordinal++) {
      const page = row.page(ordinal);
      if (page === NONE) continue;
      pages.use[page] = ordinal >= answerBegin ? answer : ordinal >= endBegin ? end : body;
      if (ordinal < returnedEnd && pages.reuses[page] === 0) pages.reuses[page] = 1;
      retain(state, page, ordinal);
    }
  }
}

/** Notes what a page that leaves the window, while its request goes on, was used for. */
export function markPassed(state: RequestState, group: GroupState, ordinal: number, page: PageId): void {
  const begin = ordinal * state.manager.config.tokensPerBlock;
  const reach = NEAR_END + (group.rules.windowSize ?? 0);
  const nearEnd = isNearEnd(begin, promptEndOf(state), reach) || isNearEnd(begin, sharedEnd(state), reach);
  const { pages } = state.manager.storage;
  pages.use[page] = pageUse(nearEnd ? PROMPT_END : PASSED, answerLength(state));
  retain(state, page, ordinal);
}

/** Notes what a snapshot of the request's state saves, and what it may be used for, before it is listed. */
export function markSnapshot(state: RequestState, page: PageId): void {
  const { pages } = state.manager.storage;
  const part = partAt(state, state.committed);
  pages.use[page] = pageUse(part, answerLength(state));
  // Two paths are known to go through here.
  pages.reuses[page] = state.committed === sharedEnd(state) ? 1 : 0;
  retain(state, page, Math.ceil(state.committed / state.manager.config.tokensPerBlock) - 1);
}

/** Counts that a request continues from what it claimed. Called once its first resume cannot fail any more. */
export function countReuse(state: RequestState): void {
  if (state.matched === 0) return;
  for (const group of state.groups) {
    if (!group.reused) continue;
    for (let ordinal = 0; ordinal < state.numBlocks; ordinal++) countReuseOf(state, group, group.page(ordinal));
    countReuseOf(state, group, group.statePage);
  }
}

function countReuseOf(state: RequestState, group: GroupState, page: PageId): void {
  if (page === NONE) return;
  const { storage } = state.manager;
  // Where no second path parts from the first, the next one will begin from what this request leaves further on.
  const isPassed = !state.isFork && (!group.isAttention || group.rules.windowSize !== null);
  if (isPassed) storage.pages.use[page] = pageUse(PASSED, 0);
  else storage.reused(page);
}

/** Gives a page that is let go of what the caller asked for its block. */
function retain(state: RequestState, page: PageId, ordinal: number): void {
  const { config, storage } = state.manager;
  state.retention?.apply(storage, page, ordinal, (ordinal + 1) * config.tokensPerBlock > state.matched);
}

/** Whether matches end only where a group has what it needs for that very end. */
function needsEnd({ policy, kind, windowSize }: GroupRules): boolean {
  return policy === 'required' && (kind === 'ssm' || windowSize !== null);
}

function partAt(state: RequestState, end: number): number {
  const promptEnd = promptEndOf(state);
  if (end > promptEnd) return ANSWER;
  return end >= promptEnd - NEAR_END ? PROMPT_END : PROMPT_BODY;
}

/** Lookups often leave out the last token of a prompt, which is always computed. */
function promptEndOf(state: RequestState): number {
  return state.expectedPromptLength + 1;
}

/** Where the path of the request leaves that of others; -1 when it does not, or only continues one. */
function sharedEnd({ depths, isFork, matched }: RequestState): number {
  return isFork || depths.path > matched ? depths.path : -1;
}

function isNearEnd(position: number, end: number, reach: number): boolean {
  return position <= end && position >= end - reach;
}

function answerLength(state: RequestState): number {
  return Math.max(0, state.committed - promptEndOf(state));
}
