import { divUp } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import type { ManagerState } from '../manager-state.ts';
import { forEachLiveBlock, isComplete } from '../request/claim.ts';
import type { GroupRules } from '../request/group-rules.ts';
import { noteMissed } from './note-missed.ts';

/**
 * Tells the coldest tier what the last match would have used of state and windows, had it been there: the last snapshot behind
 * the match, the window before its end, and what makes optional groups complete at the match itself.
 */
export function noteShortMatch(manager: ManagerState, lookedUp: number, matched: number): void {
  const { matcher, groups, config, needs, storage } = manager;
  needs[storage.lastTier].worked(lookedUp);
  const numBlocks = Math.floor(matcher.depths.path / config.tokensPerBlock);
  for (const rules of groups) {
    if (rules.policy === 'optional') noteIncomplete(manager, rules, matched);
    else if (rules.policy !== 'required' || matcher.depths.path <= matched) continue;
    else if (rules.kind === 'ssm') noteSnapshot(manager, rules, numBlocks, matched);
    else if (rules.windowSize !== null) noteWindow(manager, rules, numBlocks, matched);
  }
}

/** The snapshot that would have served most: only its absence costs anything. */
function noteSnapshot(manager: ManagerState, rules: GroupRules, numBlocks: number, matched: number): void {
  const { matcher, config } = manager;
  for (let ordinal = numBlocks - 1; ordinal >= Math.floor(matched / config.tokensPerBlock); ordinal--) {
    const end = Math.min(matcher.depths.withoutState, (ordinal + 1) * config.tokensPerBlock);
    if (end > matched && noteMissed(manager, rules, matcher.blockAt(ordinal), end - matched)) return;
  }
}

/** All pages of the window are needed, so each bears its part. */
function noteWindow(manager: ManagerState, rules: GroupRules, numBlocks: number, matched: number): void {
  const { matcher, config } = manager;
  const begin = Math.max(Math.floor(matched / config.tokensPerBlock), rules.staleEnd(numBlocks * config.tokensPerBlock));
  const cost = (numBlocks * config.tokensPerBlock - matched) / (numBlocks - begin);
  for (let ordinal = begin; ordinal < numBlocks; ordinal++) noteMissed(manager, rules, matcher.blockAt(ordinal), cost);
}

function noteIncomplete(manager: ManagerState, rules: GroupRules, matched: number): void {
  const { matcher, tree, config } = manager;
  if (matched === 0 || isComplete(manager, { rules }, matched)) return;
  if (rules.kind === 'ssm') {
    noteMissed(manager, rules, matcher.blockAt(divUp(matched, config.tokensPerBlock) - 1), matched);
    return;
  }
  let numLive = 0;
  forEachLiveBlock({ rules }, matched, () => {
    numLive++;
  });
  forEachLiveBlock({ rules }, matched, (ordinal) => {
    const block = matcher.blockAt(ordinal);
    if (tree.pageOf(block, rules.id) === NONE) noteMissed(manager, rules, block, matched / numLive);
  });
}
