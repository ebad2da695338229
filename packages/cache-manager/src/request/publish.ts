import { NONE } from '../columns.ts';
import type { PageId } from '../page/page-table.ts';
import type { BlockId } from '../tree/block-table.ts';
import { letGo, takeHold } from './block-pages.ts';
import type { GroupState } from './group-state.ts';
import { attachedBlocks, ensureBlock } from './own-path.ts';
import { markListed, markSnapshot } from './page-uses.ts';
import type { RequestState } from './request-state.ts';

/** Publishes the pages of the full blocks [begin, end), which have just been committed. */
export function publishBlocks(state: RequestState, begin: number, end: number): void {
  for (let ordinal = begin; ordinal < end; ordinal++) if (!publishBehindLeaf(state, ordinal)) publishBlock(state, ordinal);
}

/**
 * Publishes a full block whose parent is in the tree and has no children, if the request has pages for it; else changes nothing.
 * Most blocks are such, and nothing has to be looked for.
 */
function publishBehindLeaf(state: RequestState, ordinal: number): boolean {
  const { tree, storage, config } = state.manager;
  const { pages } = storage;
  if (ordinal === 0 || state.attachedEnd !== ordinal) return false;
  const parent = state.block(ordinal - 1);
  if (parent === NONE || tree.blocks.childRoot[parent] !== NONE) return false;
  let block: BlockId = NONE;
  for (const group of state.groups) {
    if (!group.isAttention || !group.publishes) continue;
    const page = group.page(ordinal);
    if (page === NONE) continue;
    if (pages.block[page] !== NONE) {
      // A fork has listed it for other tokens.
      if (block === NONE) return false;
      continue;
    }
    if (block === NONE) {
      block = tree.insertChild(parent, state.tokens, ordinal * config.tokensPerBlock, config.tokensPerBlock);
      state.setBlock(ordinal, block);
      state.attachedEnd = ordinal + 1;
    }
    tree.link(block, page, config.tokensPerBlock);
    markListed(state, group, ordinal, block);
  }
  return block !== NONE;
}

/**
 * Publishes the pages of a full block that has just been committed. Where an identical block has a page already, the
 * request takes that one and gives its own back, unless no later token of its reads it.
 *
 * A block for which the request has no page is put into the tree only to take over the pages of a published tail that it
 * continues.
 */
function publishBlock(state: RequestState, ordinal: number): void {
  if (!hasPageToPublish(state, ordinal)) {
    takeOverTail(state, ordinal);
    return;
  }
  const block = ensureBlock(state, ordinal);
  for (const group of state.groups) if (group.isAttention && group.publishes) publishOrShare(state, group, ordinal, block);
}

function hasPageToPublish(state: RequestState, ordinal: number): boolean {
  for (const group of state.groups) {
    const page = group.isAttention && group.publishes ? group.page(ordinal) : NONE;
    if (page !== NONE && !isListedElsewhere(state, ordinal, page)) return true;
  }
  return false;
}

/** Whether a page is listed for other tokens than the request's: a fork committed them for what had been written before it parted. */
function isListedElsewhere(state: RequestState, ordinal: number, page: PageId): boolean {
  const block = state.manager.storage.pages.block[page];
  return block !== NONE && (attachedBlocks(state, ordinal + 1) <= ordinal || state.block(ordinal) !== block);
}

/**
 * The first block of the request's path that is not in the tree is the only one that can continue a published tail: behind
 * it the tree has nothing.
 */
function takeOverTail(state: RequestState, ordinal: number): void {
  const { tree, config } = state.manager;
  const first = attachedBlocks(state, ordinal + 1);
  if (first > ordinal) return;
  const parent = first === 0 ? tree.root(state.scope) : state.block(first - 1);
  const { tokensPerBlock } = config;
  if (parent === NONE || !tree.hasBeginning(parent, state.tokens, first * tokensPerBlock, tokensPerBlock)) return;
  ensureBlock(state, first);
}

/** Lists the request's page of a full block, or swaps it for the one that is listed. */
export function publishOrShare(state: RequestState, group: GroupState, ordinal: number, block: BlockId): void {
  const { tree, storage, config } = state.manager;
  const page = group.page(ordinal);
  if (page === NONE || storage.pages.block[page] === block) return;
  if (tree.wants(block, group.rules.id, config.tokensPerBlock)) {
    // A page stands in one block only; where it stands for other tokens it cannot stand for these.
    if (storage.pages.block[page] === NONE) {
      tree.link(block, page, config.tokensPerBlock);
      markListed(state, group, ordinal, block);
    }
    return;
  }
  const shared = group.rules.isLive(ordinal, group.rules.keptAt(state.history)) ? tree.pageOf(block, group.rules.id) : NONE;
  if (state.status === 'active' && shared !== NONE && storage.pages.tier[shared] > 0) {
    // A commit does not wait for a page to come back: the two swap places, or else the request goes on with its own.
    if (!storage.canExchange(page, shared)) return;
    storage.exchange(page, shared);
  }
  if (shared !== NONE) takeHold(state, shared);
  group.setPage(ordinal, shared);
  if (state.status === 'active') {
    group.showIndex(ordinal, shared !== NONE && group.rules.isLive(ordinal, state.history) ? storage.pages.slot[shared] : NONE);
  }
  letGo(state, page);
}

/**
 * Makes the request's own path whole again: pages that it still holds, that the tree lost, and that a match at `count`
 * tokens needs are listed again, in blocks that are put back where they are gone. Where another request has listed its
 * page meanwhile, this one takes it over.
 */
export function restorePath(state: RequestState, count: number): void {
  const { tree, storage, config } = state.manager;
  if (state.seenLosses === tree.heldLosses) return;
  state.seenLosses = tree.heldLosses;
  const fullBlocks = Math.floor(state.committed / config.tokensPerBlock);
  for (let ordinal = 0; ordinal < fullBlocks; ordinal++) {
    for (const group of state.groups) {
      if (!group.isAttention || !group.publishes || !group.rules.isLive(ordinal, group.rules.keptAt(count))) continue;
      const page = group.page(ordinal);
      if (page !== NONE && storage.pages.block[page] === NONE) publishOrShare(state, group, ordinal, ensureBlock(state, ordinal));
    }
  }
}

/** A page of the last committed tokens that may be published: of the block's tail, or the state. */
interface TailPage {
  group: GroupState;
  /** The request's own page. */
  page: PageId;
  /** Eviction priority in the tree. */
  priority: number;
}

/**
 * Publishes what a match at exactly the committed count needs besides full blocks: the attention pages of the partial last
 * block, and the state after the last token.
 *
 * `copy`: the request goes on writing, so copies go into the tree; each that finds no slot, or only that of a page of higher
 * priority, or that the device refuses, is counted as missed and left out. `move`: the request writes no more, so its own pages do.
 */
export function publishTail(state: RequestState, how: 'copy' | 'move', parts: { tail: boolean; state: boolean }): void {
  const { tokensPerBlock } = state.manager.config;
  const partial = state.committed % tokensPerBlock;
  const inBlock = partial === 0 ? tokensPerBlock : partial;
  const ordinal = (state.committed - inBlock) / tokensPerBlock;
  const candidates = tailPages(state, ordinal, { tail: parts.tail && partial > 0, state: parts.state });
  const wanted = wantedPages(state, candidates, findTailBlock(state, ordinal, inBlock, candidates), inBlock);
  if (wanted.length === 0) return;
  if (how === 'move') linkAll(state, wanted, ordinal, inBlock);
  else linkCopies(state, wanted, ordinal, inBlock);
}

function tailPages(state: RequestState, ordinal: number, parts: { tail: boolean; state: boolean }): TailPage[] {
  const { pages } = state.manager.storage;
  const found: TailPage[] = [];
  for (const group of state.groups) {
    if (!group.publishes) continue;
    if (group.isAttention) {
      const page = parts.tail && group.rules.policy === 'required' ? group.page(ordinal) : NONE;
      if (page !== NONE && pages.block[page] === NONE) found.push({ group, page, priority: pages.priority[page] });
    } else if (parts.state && group.statePage !== NONE) {
      found.push({ group, page: group.statePage, priority: group.snapshotPriority });
    }
  }
  return found;
}

/**
 * The block that the tail's pages would go to: the block of exactly these tokens, else of the longer siblings that cover
 * them the one where most pages find room, else NONE. Changes nothing.
 */
function findTailBlock(state: RequestState, ordinal: number, inBlock: number, candidates: readonly TailPage[]): BlockId {
  const { tree, config } = state.manager;
  const offset = ordinal * config.tokensPerBlock;
  if (inBlock === config.tokensPerBlock) return attachedBlocks(state, ordinal + 1) > ordinal ? state.block(ordinal) : NONE;
  if (attachedBlocks(state, ordinal) < ordinal) return NONE;
  const parent = ordinal === 0 ? tree.root(state.scope) : state.block(ordinal - 1);
  if (parent === NONE) return NONE;
  const exact = tree.findChild(parent, state.tokens, offset, inBlock);
  if (exact !== NONE) return exact;
  let best = NONE;
  let most = -1;
  tree.order.seek(parent, state.tokens, offset, inBlock);
  for (let child = tree.order.behind; child !== NONE; child = tree.blocks.nextSibling[child]) {
    if (tree.blocks.commonPrefix(child, state.tokens, offset, inBlock) < inBlock) break;
    const room = countWanted(state, candidates, child, inBlock);
    if (room <= most) continue;
    most = room;
    best = child;
    if (room === candidates.length) break;
  }
  return best;
}

function wantedPages(state: RequestState, candidates: readonly TailPage[], block: BlockId, inBlock: number): TailPage[] {
  if (block === NONE) return [...candidates];
  return candidates.filter(({ group }) => state.manager.tree.wants(block, group.rules.id, inBlock));
}

function countWanted(state: RequestState, candidates: readonly TailPage[], block: BlockId, inBlock: number): number {
  let count = 0;
  for (const { group } of candidates) if (state.manager.tree.wants(block, group.rules.id, inBlock)) count++;
  return count;
}

function linkAll(state: RequestState, wanted: readonly TailPage[], ordinal: number, inBlock: number): void {
  const { tree, storage } = state.manager;
  const block = ensureTailBlock(state, ordinal, inBlock, wanted);
  for (const { group, page, priority } of wanted) {
    if (!tree.wants(block, group.rules.id, inBlock)) continue;
    storage.setPriority(page, priority);
    if (!group.isAttention) markSnapshot(state, page);
    tree.link(block, page, inBlock);
  }
}

function linkCopies(state: RequestState, wanted: readonly TailPage[], ordinal: number, inBlock: number): void {
  const { manager } = state;
  const { storage, commands, evictor, offload, missedSnapshots } = manager;
  // Not its columns: they are others once the table grows.
  const { pages } = storage;
  /** Copies on the device. */
  const copies: TailPage[] = [];
  /** Where the device has no room: copies in the first colder tier. */
  const coldCopies: TailPage[] = [];
  for (const { group, page, priority } of wanted) {
    const { poolGroup, id } = group.rules;
    // Evicting may take blocks of this very path along; the block is looked for only when all copies have their slots.
    if (storage.hasRoomFor(poolGroup, priority) && evictor.tryFree(poolGroup, 1)) {
      const copy = storage.createHeld(id, priority);
      commands.copy(id, poolGroup, pages.slot[page], pages.slot[copy]);
      copies.push({ group, page: copy, priority });
      continue;
    }
    const coldSlot = evictor.slotForCopy(page, priority);
    if (coldSlot === NONE) {
      missedSnapshots[id]++;
      if (group.rules.kind === 'ssm') manager.needs[0].refused(poolGroup, 1);
      continue;
    }
    const copy = storage.createCold(id, priority, coldSlot);
    offload.readInto(copy, pages.slot[page]);
    coldCopies.push({ group, page: copy, priority });
  }
  offload.flush();
  if (copies.length + coldCopies.length === 0) return;
  try {
    commands.execute(copies.map(({ page }) => page));
  } catch (error) {
    // The commit stands without them, as it does for want of a slot.
    for (const { group } of copies) missedSnapshots[group.rules.id]++;
    manager.refusedCopy = { error };
    copies.length = 0;
  }
  const made = [...copies, ...coldCopies];
  if (made.length > 0) linkAll(state, made, ordinal, inBlock);
  for (const { page } of copies) storage.release(page);
  for (const { page } of coldCopies) storage.unpin(page);
}

function ensureTailBlock(state: RequestState, ordinal: number, inBlock: number, wanted: readonly TailPage[]): BlockId {
  const { tree, config } = state.manager;
  if (inBlock === config.tokensPerBlock) return ensureBlock(state, ordinal);
  const parent = ordinal === 0 ? tree.ensureRoot(state.scope) : ensureBlock(state, ordinal - 1);
  const known = findTailBlock(state, ordinal, inBlock, wanted);
  return known !== NONE ? known : tree.insertChild(parent, state.tokens, ordinal * config.tokensPerBlock, inBlock);
}
