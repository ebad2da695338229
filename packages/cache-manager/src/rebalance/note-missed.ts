import { contentHash } from '../eviction/eviction-view.ts';
import type { ManagerState } from '../manager-state.ts';
import type { GroupRules } from '../request/group-rules.ts';
import type { BlockId } from '../tree/block-table.ts';

/**
 * Tells the coldest tier that a page of a block would have been used, had it been there, and how many tokens that takes to compute
 * again. Says whether it was there not long ago.
 */
export function noteMissed({ storage, tree, needs }: ManagerState, rules: GroupRules, block: BlockId, tokens: number): boolean {
  const hash = contentHash(tree.blocks.pathHash[block], rules.id);
  return needs[storage.lastTier].missed(storage.groupIn(storage.lastTier, rules.id), hash, tokens);
}
