import { divUp, isShareable, numTokensNeeded, StateError, type TokenRange } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import type { PageId } from '../page/page-table.ts';
import type { BlockId } from '../tree/block-table.ts';
import type { TokenBuffer, TokenSeq } from '../tree/token-seq.ts';
import { letGo, releaseBlock, takeHold } from './block-pages.ts';
import { forEachLiveBlock } from './claim.ts';
import type { GroupState } from './group-state.ts';
import type { RequestState } from './request-state.ts';
import type { GroupReuseStatus } from './reuse-status.ts';

/**
 * Takes, for the tokens behind the committed ones that a request has room for and that will be written from outside, what others
 * have published of each group by itself: full blocks are shared, a partial last block and recurrent state are copied. What
 * is to come cannot reach pages that no later token reads: those are let go.
 *
 * @returns what the request has of each group at its history now; index = group id
 * @throws {StateError} in the wrong state, or when the tokens are not those between the committed count and a full room; {TokenError} on
 *   anything that is no token; whatever the device throws for a copy. Nothing has changed then
 */
export function takePublished(state: RequestState, tokens: TokenSeq): readonly GroupReuseStatus[] {
  state.manager.checkNotAsking('takePublished');
  checkRoom(state, tokens.length);
  const text = state.tokens.prefix(state.committed, state.history);
  text.append(tokens);
  const known = knownBlocks(state, text);
  const copied = copyEnds(state, known, text);
  for (const group of state.groups) if (group.isAttention && isShareable(group.rules.policy)) shareBlocks(state, group, known);
  const status = state.groups.map((group) => statusOf(state, group, copied));
  for (const group of state.groups) if (group.isAttention && group.publishes) dropUnreachable(state, group);
  return Object.freeze(status);
}

function checkRoom({ status, beamWidth, committed, history, capacity }: RequestState, count: number): void {
  if (status !== 'active') throw new StateError(`take-${status}`, `takePublished: the request is ${status}; resume it first`);
  if (beamWidth > 1)
    throw new StateError('several-beams', `takePublished: the request carries ${beamWidth} beams; keepBeam(index) first`);
  if (committed + count === history && history === capacity) return;
  throw new StateError(
    'take-lengths',
    `takePublished: ${count} tokens behind ${committed} committed ones, but the history is ${history} and the capacity ${capacity}; ` +
      'resize(n, n) to the end of the tokens first',
  );
}

/** The full blocks of the text that are in the tree, from the first on. */
function knownBlocks({ manager, scope }: RequestState, text: TokenBuffer): BlockId[] {
  const { tree, config } = manager;
  const { tokensPerBlock } = config;
  const known: BlockId[] = [];
  let parent = tree.root(scope);
  while (parent !== NONE && (known.length + 1) * tokensPerBlock <= text.length) {
    parent = tree.findChild(parent, text, known.length * tokensPerBlock, tokensPerBlock);
    if (parent !== NONE) known.push(parent);
  }
  return known;
}

/** Copies what others have of the end of the text into the request's own pages. @returns the groups */
function copyEnds(state: RequestState, known: readonly BlockId[], text: TokenBuffer): ReadonlySet<GroupState> {
  const { storage, commands } = state.manager;
  const { slot } = storage.pages;
  const copied = new Set<GroupState>();
  const ends = endBlocks(state, known, text);
  if (state.committed === text.length) return copied;
  for (const group of state.groups) {
    if (!isShareable(group.rules.policy)) continue;
    const { source, target } = endPages(state, group, ends);
    if (source === NONE || target === NONE || source === target) continue;
    commands.copy(group.rules.id, group.rules.poolGroup, slot[source], slot[target]);
    copied.add(group);
  }
  commands.execute();
  return copied;
}

/** Blocks of the tree that hold the last tokens of the text, at the ordinal of the last one, and perhaps more behind them. */
function endBlocks({ manager, scope }: RequestState, known: readonly BlockId[], text: TokenBuffer): BlockId[] {
  const { tree, config } = manager;
  const last = divUp(text.length, config.tokensPerBlock) - 1;
  if (known.length > last) return [known[last]];
  if (known.length < last) return [];
  const parent = last === 0 ? tree.root(scope) : known[last - 1];
  if (parent === NONE) return [];
  const offset = last * config.tokensPerBlock;
  const inBlock = text.length - offset;
  const ends: BlockId[] = [];
  tree.order.seek(parent, text, offset, inBlock);
  for (let child = tree.order.behind; child !== NONE; child = tree.blocks.nextSibling[child]) {
    if (tree.blocks.commonPrefix(child, text, offset, inBlock) < inBlock) break;
    ends.push(child);
  }
  return ends;
}

/** The published page that ends like the text, on the device, and the request's own that it may be copied into; NONE for none. */
function endPages(state: RequestState, group: GroupState, ends: readonly BlockId[]): { source: PageId; target: PageId } {
  const { tree, storage, config } = state.manager;
  const { pages } = storage;
  const { history } = state;
  const last = divUp(history, config.tokensPerBlock) - 1;
  const inBlock = history - last * config.tokensPerBlock;
  // A whole block is shared, not copied.
  const isCopied = !group.isAttention || inBlock < config.tokensPerBlock;
  const target = group.isAttention ? group.page(last) : group.statePage;
  if (!isCopied || target === NONE || pages.block[target] !== NONE) return { source: NONE, target: NONE };
  for (const block of ends) {
    const isThere = !group.isAttention || tree.coverage(block, group.rules.id) >= inBlock;
    const source = group.isAttention ? tree.pageOf(block, group.rules.id) : tree.snapshotAt(block, group.rules.id, inBlock);
    if (isThere && source !== NONE && pages.tier[source] === 0) return { source, target };
  }
  return { source: NONE, target: NONE };
}

/** Takes the listed pages of full blocks instead of fresh ones; one in a colder tier only where the two can swap places. */
function shareBlocks(state: RequestState, group: GroupState, known: readonly BlockId[]): void {
  const { tree, storage, config } = state.manager;
  const { pages } = storage;
  const first = Math.floor(state.committed / config.tokensPerBlock);
  for (let ordinal = first; ordinal < known.length; ordinal++) {
    const own = group.page(ordinal);
    const shared =
      tree.coverage(known[ordinal], group.rules.id) === config.tokensPerBlock
        ? tree.pageOf(known[ordinal], group.rules.id)
        : NONE;
    if (own === NONE || shared === NONE || own === shared) continue;
    if (pages.tier[shared] > 0) {
      if (!storage.canExchange(own, shared)) continue;
      storage.exchange(own, shared);
    }
    takeHold(state, shared);
    group.setPage(ordinal, shared);
    group.showIndex(ordinal, group.rules.isLive(ordinal, state.history) ? pages.slot[shared] : NONE);
    letGo(state, own);
  }
}

function statusOf(state: RequestState, group: GroupState, copied: ReadonlySet<GroupState>): GroupReuseStatus {
  const { id: groupId, policy, lifecycle } = group.rules;
  const { history, matched, committed } = state;
  const { pages } = state.manager.storage;
  const { tokensPerBlock } = state.manager.config;
  const nothing = Object.freeze({ groupId, policy, complete: false, endpoint: 0, coverage: [] });
  if (policy === 'private' || history === 0) return nothing;
  // Of the match it has what it reused; committed beyond that it has written itself.
  const own = committed > matched || group.reused ? committed : 0;
  if (lifecycle.kind === 'ssm') {
    const complete = copied.has(group) || own === history;
    return complete
      ? Object.freeze({ groupId, policy, complete, endpoint: history, coverage: [[0, history] as const] })
      : nothing;
  }
  const coverage: TokenRange[] = [];
  let complete = true;
  forEachLiveBlock(group, history, (ordinal) => {
    const begin = ordinal * tokensPerBlock;
    const needed = numTokensNeeded(lifecycle, ordinal, history, tokensPerBlock);
    const isShared = pages.block[group.page(ordinal)] !== NONE && begin + tokensPerBlock <= history;
    const isCopied = copied.has(group) && begin + tokensPerBlock > history;
    const numTokens = isShared || isCopied ? needed : Math.max(0, Math.min(needed, own - begin));
    if (numTokens < needed) complete = false;
    if (numTokens === 0) return;
    const last = coverage.at(-1);
    if (last !== undefined && last[1] === begin) coverage[coverage.length - 1] = [last[0], begin + numTokens];
    else coverage.push([begin, begin + numTokens]);
  });
  return Object.freeze({ groupId, policy, complete, endpoint: complete ? history : 0, coverage });
}

/** Lets go of pages that would be published and that nobody fills: no token behind the history reads them. */
function dropUnreachable(state: RequestState, group: GroupState): void {
  const { pages } = state.manager.storage;
  for (let ordinal = 0; ordinal < state.numBlocks; ordinal++) {
    const page = group.page(ordinal);
    if (page === NONE || group.rules.isLive(ordinal, state.history) || pages.block[page] !== NONE) continue;
    releaseBlock(state, group, ordinal);
  }
}
