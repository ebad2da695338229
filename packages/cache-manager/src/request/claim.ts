import { divUp } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import type { ManagerState } from '../manager-state.ts';
import type { BlockId } from '../tree/block-table.ts';
import type { GroupRules } from './group-rules.ts';
import { matchLimits } from './match-limits.ts';
import { countMissed } from './page-uses.ts';
import type { RequestState } from './request-state.ts';

/** A request's share of a group, or only its rules. */
interface Ruled {
  readonly rules: GroupRules;
}

/**
 * Takes hold of the pages that a fresh match found: all of every required group, and of each optional group if it is
 * complete at the endpoint. Nothing is allocated.
 */
export function claimMatch(state: RequestState): void {
  const { manager, matched } = state;
  if (state.depths.path > matched && !state.requireOptional) countMissed(manager, matched);
  state.limits = matchLimits(manager, state.lookedUp ?? state.depths.path);
  if (matched === 0) return;
  const { matcher } = manager;
  const fullBlocks = Math.floor(matched / manager.config.tokensPerBlock);
  state.setPath(matcher.path, fullBlocks);
  state.isFork = isFork(manager, matched);
  for (const group of state.groups) {
    group.complete = isComplete(manager, group, matched);
    if (!group.complete) continue;
    if (!group.isAttention) {
      const last = divUp(matched, manager.config.tokensPerBlock) - 1;
      group.statePage = manager.tree.snapshotAt(
        matcher.blockAt(last),
        group.rules.id,
        matched - last * manager.config.tokensPerBlock,
      );
      manager.storage.claim(group.statePage);
      continue;
    }
    group.reserve(divUp(matched, manager.config.tokensPerBlock), state.expectedBlocks);
    forEachLiveBlock(group, matched, (ordinal) => {
      const page = manager.tree.pageOf(matcher.blockAt(ordinal), group.rules.id);
      manager.storage.claim(page);
      group.setPage(ordinal, page);
    });
  }
}

/** Whether the tree goes on behind the match. */
function isFork({ tree, matcher, config }: ManagerState, matched: number): boolean {
  const last = divUp(matched, config.tokensPerBlock) - 1;
  const block = matcher.blockAt(last);
  return tree.blocks.childRoot[block] !== NONE || tree.blocks.numTokens[block] > matched - last * config.tokensPerBlock;
}

/** Whether the tree has everything that a group needs to continue at the match. */
export function isComplete(manager: ManagerState, group: Ruled, matched: number): boolean {
  const { tree, matcher } = manager;
  const { tokensPerBlock } = manager.config;
  const { rules } = group;
  const inBlock = (ordinal: number) => Math.min(tokensPerBlock, matched - ordinal * tokensPerBlock);
  if (rules.policy === 'private') return false;
  if (rules.policy === 'required') return true;
  if (rules.kind === 'ssm') {
    const last = divUp(matched, tokensPerBlock) - 1;
    return tree.snapshotAt(matcher.blockAt(last) as BlockId, rules.id, inBlock(last)) !== NONE;
  }
  if (matched % tokensPerBlock !== 0) return false;
  let complete = true;
  forEachLiveBlock(group, matched, (ordinal) => {
    if (tree.coverage(matcher.blockAt(ordinal), rules.id) < inBlock(ordinal)) complete = false;
  });
  return complete;
}

/** Calls `visit` with the ordinals of the blocks that tokens after `numTokens` read, ascending. */
export function forEachLiveBlock(group: Ruled, numTokens: number, visit: (ordinal: number) => void): void {
  const { rules } = group;
  const numBlocks = divUp(numTokens, rules.tokensPerBlock);
  const staleBegin = rules.staleBegin(numTokens);
  for (let ordinal = 0; ordinal < Math.min(staleBegin, numBlocks); ordinal++) visit(ordinal);
  for (let ordinal = Math.max(staleBegin, rules.staleEnd(numTokens)); ordinal < numBlocks; ordinal++) visit(ordinal);
}
