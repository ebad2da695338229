import { NONE } from '../columns.ts';
import type { BlockId } from '../tree/block-table.ts';
import type { RequestState } from './request-state.ts';

/**
 * How many full blocks of the request's committed tokens are in the tree, from the root on, up to `limit`; whoever put them
 * there. `state.block` names each of them afterwards.
 *
 * Begins where the last call ended, so that a commit pays for its own blocks only.
 */
export function attachedBlocks(state: RequestState, limit: number): number {
  const { tree, config } = state.manager;
  let count = state.attachedEnd;
  // A block is in the tree only with all blocks before it.
  while (count > 0 && state.block(count - 1) === NONE) count--;
  let last = count === 0 ? tree.root(state.scope) : state.block(count - 1);
  while (count < limit && last !== NONE) {
    last = tree.findChild(last, state.tokens, count * config.tokensPerBlock, config.tokensPerBlock);
    if (last !== NONE) state.setBlock(count++, last);
  }
  state.attachedEnd = count;
  return Math.min(count, limit);
}

/** The tree block of a full block of the request's committed tokens; put (back) into the tree, with its ancestors, when it is not there. */
export function ensureBlock(state: RequestState, ordinal: number): BlockId {
  const { tree, config } = state.manager;
  let count = attachedBlocks(state, ordinal + 1);
  let block = count === 0 ? tree.ensureRoot(state.scope) : state.block(count - 1);
  while (count <= ordinal) {
    block = tree.insertChild(block, state.tokens, count * config.tokensPerBlock, config.tokensPerBlock);
    state.setBlock(count++, block);
  }
  state.attachedEnd = Math.max(state.attachedEnd, count);
  return block;
}
