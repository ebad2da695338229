import { StateError } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import type { ManagerState } from '../manager-state.ts';
import { rowOf } from '../page/page-table.ts';
import type { GroupState } from '../request/group-state.ts';
import type { RequestState } from '../request/request-state.ts';
import type { TierGroup } from '../storage/tier.ts';
import type { BlockId } from '../tree/block-table.ts';
import { scopeParts } from '../tree/reuse-scope.ts';
import type {
  BlockSnapshot,
  GroupSnapshot,
  InspectOptions,
  ManagerSnapshot,
  PageSnapshot,
  PoolGroupSnapshot,
  RequestGroupSnapshot,
  RequestSnapshot,
  ScopeSnapshot,
  SlotSnapshot,
} from './manager-snapshot.ts';

const MAX_BLOCKS = 10_000;
const MAX_PAGES = 20_000;
const NO_OWNERS: readonly number[] = Object.freeze([]);

/**
 * Writes down what a manager holds. Costs a look at every page and a visit to each slot and block that is shown; changes nothing.
 *
 * @throws {StateError} `invalid-limit` on a limit that is no whole number from 0 on
 */
export function takeSnapshot(state: ManagerState, options: InspectOptions): ManagerSnapshot {
  const { maxBlocks = MAX_BLOCKS, maxPages = MAX_PAGES, tokens: withTokens = true } = options;
  checkLimit(maxBlocks, 'maxBlocks');
  checkLimit(maxPages, 'maxPages');
  const holders = findHolders(state);
  const pages = snapshotPages(state, holders, maxPages);
  const numBlocks = state.tree.blocks.count - state.tree.roots.size;
  const numPages = countPages(state);
  const tree = snapshotTree(state, maxBlocks, withTokens);
  const shownBlocks = tree.reduce((count, { blocks }) => count + blocks.length, 0);
  return {
    tokensPerBlock: state.config.tokensPerBlock,
    groups: state.groups.map(
      ({ id, kind, policy, windowSize, numSinkBlocks, poolGroup }): GroupSnapshot => ({
        groupId: id,
        kind,
        policy,
        windowSize,
        numSinkBlocks,
        poolGroup,
      }),
    ),
    poolGroups: snapshotTier(state, 0, holders, maxPages),
    colderTiers: state.storage.tiers
      .slice(1)
      .map(({ kind }, index) => ({ tier: kind, poolGroups: snapshotTier(state, index + 1, holders, maxPages) })),
    pages,
    tree,
    requests: [...state.open].map(snapshotRequest),
    omitted: { blocks: numBlocks - shownBlocks, pages: numPages - pages.length },
  };
}

function checkLimit(limit: number, name: string): void {
  if (Number.isSafeInteger(limit) && limit >= 0) return;
  throw new StateError('invalid-limit', `inspect: ${name} is ${limit}; it must be a whole number from 0 on`);
}

/** Who holds which page. */
interface Holders {
  /** Keys of requests by row of the page; undefined where nobody holds the page. */
  readonly owners: (number[] | undefined)[];
  /** Whether one of them is active, by row of the page. */
  readonly locked: Uint8Array;
}

function findHolders(state: ManagerState): Holders {
  const numPages = state.storage.pages.size;
  const owners: (number[] | undefined)[] = new Array(numPages).fill(undefined);
  const locked = new Uint8Array(numPages);
  for (const request of state.open) {
    const isActive = request.status === 'active' ? 1 : 0;
    const add = (page: number) => {
      if (page === NONE) return;
      const row = rowOf(page);
      locked[row] |= isActive;
      const keys = owners[row];
      if (keys === undefined) owners[row] = [request.key];
      else if (keys[keys.length - 1] !== request.key) keys.push(request.key);
    };
    for (const group of request.groups) {
      for (let beam = 0; beam < group.numBeams; beam++) {
        add(group.row(beam).statePage);
        for (let ordinal = beam === 0 ? 0 : group.sharedEnd; ordinal < request.numBlocks; ordinal++)
          add(group.page(ordinal, beam));
      }
    }
  }
  return { owners, locked };
}

function countPages({ storage: { pages } }: ManagerState): number {
  let count = 0;
  for (const _ of pages) count++;
  return count;
}

function snapshotPages({ storage: { pages } }: ManagerState, { owners }: Holders, maxPages: number): PageSnapshot[] {
  const shown: PageSnapshot[] = [];
  for (const page of pages) {
    if (shown.length === maxPages) break;
    shown.push({
      id: page,
      groupId: pages.lifecycle[page],
      tier: pages.tier[page],
      slot: pages.slot[page],
      block: idOrNull(pages.block[page]),
      coverage: pages.block[page] === NONE ? 0 : pages.coverage[page],
      holds: pages.holds[page],
      priority: pages.priority[page],
      owners: owners[rowOf(page)] ?? NO_OWNERS,
    });
  }
  return shown;
}

const FREE: SlotSnapshot = Object.freeze({ state: 'free', page: null });
const SCRATCH: SlotSnapshot = Object.freeze({ state: 'scratch', page: null });

function snapshotTier(state: ManagerState, tier: number, holders: Holders, maxPages: number): PoolGroupSnapshot[] {
  return state.storage.tiers[tier].groups.map((group, index) => snapshotPoolGroup(state, group, tier, index, holders, maxPages));
}

function snapshotPoolGroup(
  state: ManagerState,
  home: TierGroup,
  tier: number,
  index: number,
  { locked }: Holders,
  maxPages: number,
): PoolGroupSnapshot {
  const { slotBytes, slots } = home;
  const { pages } = state.storage;
  const shown: SlotSnapshot[] = new Array(Math.min(slots.slots, maxPages)).fill(FREE);
  const show = (slot: number, snapshot: SlotSnapshot) => {
    if (slot < shown.length) shown[slot] = snapshot;
  };
  for (const page of pages) {
    if (pages.tier[page] !== tier || state.storage.groupIn(tier, pages.lifecycle[page]) !== index) continue;
    show(pages.slot[page], { state: locked[rowOf(page)] === 1 ? 'locked' : pages.holds[page] > 0 ? 'held' : 'droppable', page });
  }
  for (const request of state.open) {
    for (const group of request.groups)
      if (tier === 0 && group.rules.poolGroup === index) for (const slot of group.scratchSlots) show(slot, SCRATCH);
  }
  const queue: number[] = [];
  for (const page of home.leaving()) {
    if (queue.length === maxPages) break;
    queue.push(page);
  }
  return { slotBytes, numSlots: slots.slots, numFree: slots.free, slots: shown, queue };
}

function snapshotTree(state: ManagerState, maxBlocks: number, withTokens: boolean): ScopeSnapshot[] {
  const { tree } = state;
  let left = maxBlocks;
  return [...tree.roots].map(([key, root]) => {
    const children = childrenOf(state, root);
    const blocks: BlockSnapshot[] = [];
    // Depth first, without recursion: a sequence may be deeper than a stack.
    const next = [...children].reverse();
    for (; left > 0 && next.length > 0; left--) {
      const block = snapshotBlock(state, next.pop() as BlockId, withTokens);
      blocks.push(block);
      for (let i = block.children.length - 1; i >= 0; i--) next.push(block.children[i]);
    }
    return { ...scopeParts(key), children, blocks };
  });
}

function snapshotBlock(state: ManagerState, block: BlockId, withTokens: boolean): BlockSnapshot {
  const { blocks } = state.tree;
  const pages: number[] = [];
  for (let group = 0; group < state.groups.length; group++) {
    for (let page = blocks.firstPage(block, group); page !== NONE; page = state.storage.pages.nextInBlock[page]) pages.push(page);
  }
  const ordinal = blocks.ordinal[block];
  return {
    id: block,
    parent: ordinal === 0 ? null : blocks.parent[block],
    ordinal,
    numTokens: blocks.numTokens[block],
    tokens: withTokens ? tokensOf(state, block) : [],
    pages,
    children: childrenOf(state, block),
  };
}

function tokensOf({ tree: { blocks } }: ManagerState, block: BlockId): (number | string)[] {
  const ids = blocks.tokens(block);
  const tokens: (number | string)[] = new Array(ids.length);
  for (let i = 0; i < ids.length; i++) tokens[i] = ids[i];
  blocks.digests(block)?.forEach((digest, index) => {
    tokens[index] = Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
  });
  return tokens;
}

function childrenOf({ tree: { blocks, order } }: ManagerState, block: BlockId): number[] {
  const children: number[] = [];
  for (let child = order.first(block); child !== NONE; child = blocks.nextSibling[child]) children.push(child);
  return children;
}

function snapshotRequest(request: RequestState): RequestSnapshot {
  return {
    key: request.key,
    id: request.id ?? null,
    status: request.status === 'active' ? 'active' : 'suspended',
    ...scopeParts(request.scope),
    numCommittedTokens: request.committed,
    historyLength: request.history,
    capacity: request.capacity,
    beamWidth: request.beamWidth,
    groups: request.groups.map((group) => snapshotRequestGroup(request, group)),
  };
}

function snapshotRequestGroup(request: RequestState, group: GroupState): RequestGroupSnapshot {
  const numBlocks = group.isAttention ? request.numBlocks : 0;
  return {
    groupId: group.rules.id,
    numSharedBlocks: group.sharedEnd,
    beams: Array.from({ length: group.numBeams }, (_, beam) => ({
      pages: Array.from({ length: numBlocks }, (_, ordinal) => idOrNull(group.page(ordinal, beam))),
      state: idOrNull(group.row(beam).statePage),
    })),
    scratch: group.scratch === null ? null : { begin: group.scratchBegin, end: group.scratchEnd, slots: [...group.scratchSlots] },
  };
}

function idOrNull(id: number): number | null {
  return id === NONE ? null : id;
}
