import { NONE } from '../columns.ts';
import type { KvCacheManager } from '../kv-cache-manager.ts';
import type { ManagerState } from '../manager-state.ts';
import type { PageId } from '../page/page-table.ts';
import { type ReuseScope, scopeKey } from '../tree/reuse-scope.ts';
import { TokenBuffer, type TokenSeq } from '../tree/token-seq.ts';
import { stateOf } from './manager-registry.ts';

/** Names one published page by the tokens of its block. */
export interface DropPageTarget {
  /** At least the tokens up to the end of the block. */
  tokens: TokenSeq;
  /** Block ordinal: the piece `tokens[block * tokensPerBlock .. (block + 1) * tokensPerBlock)` must equal the block's tokens. */
  block: number;
  /** For an SSM group: the snapshot at exactly the end of the piece, in the block that equals or covers it. */
  groupId: number;
  scope?: ReuseScope;
}

/** Removes one published page as eviction would, also one that a request holds (which keeps it). Says whether it was there. */
export function dropPage(manager: KvCacheManager, target: DropPageTarget): boolean {
  const state = stateOf(manager);
  const page = findPage(state, target);
  if (page === NONE) return false;
  state.tree.remove(page);
  state.afterCall();
  return true;
}

function findPage(state: ManagerState, target: DropPageTarget): PageId {
  const { tree } = state;
  const { tokensPerBlock } = state.config;
  const tokens = TokenBuffer.from(target.tokens);
  let parent = tree.root(scopeKey(target.scope));
  for (let ordinal = 0; ordinal < target.block && parent !== NONE; ordinal++) {
    const offset = ordinal * tokensPerBlock;
    parent = offset + tokensPerBlock <= tokens.length ? tree.findChild(parent, tokens, offset, tokensPerBlock) : NONE;
  }
  const offset = target.block * tokensPerBlock;
  const count = Math.min(tokensPerBlock, tokens.length - offset);
  if (parent === NONE || count <= 0) return NONE;
  const exact = tree.findChild(parent, tokens, offset, count);
  if (state.groups[target.groupId]?.kind === 'attention') return exact === NONE ? NONE : tree.pageOf(exact, target.groupId);
  if (exact !== NONE) {
    const page = tree.snapshotAt(exact, target.groupId, count);
    if (page !== NONE) return page;
  }
  tree.order.seek(parent, tokens, offset, count);
  for (let child = tree.order.behind; child !== NONE; child = tree.blocks.nextSibling[child]) {
    if (tree.blocks.commonPrefix(child, tokens, offset, count) < count) break;
    const page = tree.snapshotAt(child, target.groupId, count);
    if (page !== NONE) return page;
  }
  return NONE;
}
