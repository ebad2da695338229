import { NONE } from '../columns.ts';
import type { ManagerState } from '../manager-state.ts';
import { pageAt, QUEUED_DROPPABLE, QUEUED_HELD, QUEUED_NOT } from '../page/page-table.ts';
import { forEachPage } from '../request/block-pages.ts';
import type { GroupState } from '../request/group-state.ts';
import type { RequestState } from '../request/request-state.ts';
import type { BlockId, BlockTable } from '../tree/block-table.ts';
import { InvariantError } from './invariant-error.ts';

/** See `checkInvariants`. */
export function checkState(state: ManagerState): void {
  if (state.closed) return;
  const findings: string[] = [];
  const expect = (holds: boolean, text: () => string) => {
    if (!holds) findings.push(text());
  };
  checkTree(state, expect);
  checkPages(state, expect);
  checkTiers(state, expect);
  checkRequests(state, expect);
  if (findings.length > 0) throw new InvariantError(findings);
}

type Expect = (holds: boolean, text: () => string) => void;

/** Every block is reachable, linked both ways, in its place among its siblings, in the index, and has pages or children; only full blocks have children. */
function checkTree(state: ManagerState, expect: Expect): void {
  const { blocks, order, roots } = state.tree;
  let reached = 0;
  // Not by recursion: a path may have more blocks than a call stack has frames.
  const ahead = [...roots.values()];
  const visit = (block: BlockId): void => {
    const isRoot = blocks.ordinal[block] === NONE;
    reached++;
    let children = 0;
    let previous = NONE;
    const ordered = searchOrder(blocks, blocks.childRoot[block]);
    for (let child = order.first(block); child !== NONE; child = blocks.nextSibling[child]) {
      children++;
      expect(ordered[children - 1] === child, () => `block ${child} is not where a search among its siblings looks for it`);
      expect(hangsBelow(blocks, block, child), () => `block ${child} does not name what it hangs from among its siblings`);
      expect(state.tree.canBeFound(child), () => `block ${child} is not in the index`);
      expect(blocks.parent[child] === block, () => `block ${child} does not name its parent ${block}`);
      expect(blocks.previousSibling[child] === previous, () => `block ${child} does not name its sibling ${previous}`);
      expect(blocks.ordinal[child] === blocks.ordinal[block] + 1, () => `block ${child} has ordinal ${blocks.ordinal[child]}`);
      expect(
        previous === NONE || blocks.compare(previous, child) < 0,
        () => `block ${child} stands behind block ${previous}, out of order`,
      );
      previous = child;
      ahead.push(child);
    }
    let pages = 0;
    for (let group = 0; group < state.groups.length; group++) {
      for (let page = blocks.firstPage(block, group); page !== NONE; page = state.storage.pages.nextInBlock[page]) {
        pages++;
        const coverage = state.storage.pages.coverage[page];
        expect(state.storage.pages.block[page] === block, () => `page ${page} does not name its block ${block}`);
        expect(state.storage.pages.lifecycle[page] === group, () => `page ${page} is listed for group ${group}`);
        expect(
          coverage > 0 && coverage <= blocks.numTokens[block],
          () => `page ${page} covers ${coverage} of ${blocks.numTokens[block]} tokens`,
        );
        expect(state.groups[group].policy !== 'private', () => `private page ${page} is published`);
      }
      const isAttention = state.groups[group].kind === 'attention';
      const first = blocks.firstPage(block, group);
      expect(
        !(isAttention && first !== NONE && state.storage.pages.nextInBlock[first] !== NONE),
        () => `block ${block} lists two pages of group ${group}`,
      );
    }
    expect(pages === blocks.numPages[block], () => `block ${block} counts ${blocks.numPages[block]} pages and has ${pages}`);
    expect(pages > 0 || children > 0, () => `block ${block} has neither pages nor children`);
    expect(isRoot ? pages === 0 : blocks.numTokens[block] > 0, () => `block ${block} has no tokens, or is a root with pages`);
    expect(
      children === 0 || isRoot || blocks.numTokens[block] === blocks.tokensPerBlock,
      () => `partial block ${block} has children`,
    );
  };
  while (ahead.length > 0) visit(ahead.pop() as BlockId);
  expect(reached === blocks.count, () => `${blocks.count} blocks exist, ${reached} are reached`);
}

/** The blocks of a search tree of siblings, from the first to the last. */
function searchOrder(blocks: BlockTable, top: BlockId): BlockId[] {
  if (top === NONE) return [];
  return [...searchOrder(blocks, blocks.lower[top]), top, ...searchOrder(blocks, blocks.higher[top])];
}

function hangsBelow(blocks: BlockTable, parent: BlockId, child: BlockId): boolean {
  const above = blocks.above[child];
  return above === NONE ? blocks.childRoot[parent] === child : blocks.lower[above] === child || blocks.higher[above] === child;
}

/** Every page is held and used as often as requests and prefix pins say, and is where a page in its state may be. */
function checkPages(state: ManagerState, expect: Expect): void {
  const { pages, boardings, landings, lastTier } = state.storage;
  const length = pageAt(pages.size);
  const holds = new Int32Array(length);
  const locks = new Int32Array(length);
  const pins = new Int32Array(length);
  for (const page of pages) holds[page] = state.pins.holdsOf(page);
  for (const request of state.open) {
    const lock = request.status === 'active' ? 1 : 0;
    forEachPage(request, (page) => {
      holds[page]++;
      locks[page] += lock;
    });
  }
  for (const boarding of boardings) for (const page of boarding.pinned) pins[page]++;
  for (const page of pages) {
    const listed = pages.block[page] !== NONE;
    expect(pages.holds[page] === holds[page], () => `page ${page} counts ${pages.holds[page]} holds and has ${holds[page]}`);
    expect(pages.locks[page] === locks[page], () => `page ${page} counts ${pages.locks[page]} locks and has ${locks[page]}`);
    expect(pages.pins[page] === pins[page], () => `page ${page} counts ${pages.pins[page]} pins and has ${pins[page]}`);
    expect(holds[page] > 0 || pins[page] > 0 || listed, () => `page ${page} is neither held nor listed`);
    expect(
      holds[page] <= 1 || state.groups[pages.lifecycle[page]].policy !== 'private',
      () => `private page ${page} has ${holds[page]} holders`,
    );
    expect(locks[page] === 0 || pages.tier[page] === 0, () => `page ${page} is in use and in tier ${pages.tier[page]}`);
    expect(pages.tier[page] <= lastTier, () => `page ${page} is in tier ${pages.tier[page]} of ${lastTier + 1}`);
    expect(!landings.has(page) || pages.tier[page] > 0, () => `page ${page} of the device is under way`);
  }
}

/** Every slot of every tier has one owner; exactly the pages that may leave a tier wait in its queues. */
function checkTiers(state: ManagerState, expect: Expect): void {
  const { storage } = state;
  const { pages, tiers, staging, landings } = storage;
  const owners = tiers.map(({ groups }) => groups.map(() => new Map<number, string>()));
  const own = (tier: number, group: number, slot: number, owner: string) => {
    const slots = owners[tier][group];
    const name = `slot ${slot} of pool group ${group} in tier ${tier}`;
    expect(!slots.has(slot), () => `${name} belongs to ${slots.get(slot)} and to ${owner}`);
    expect(tiers[tier].groups[group].slots.isAllocated(slot), () => `${name} is free and belongs to ${owner}`);
    slots.set(slot, owner);
  };
  for (const request of state.open) {
    for (const { rules, scratchSlots } of request.groups) {
      for (const slot of scratchSlots) own(0, rules.poolGroup, slot, `scratch of request ${request.id}`);
    }
  }
  for (const boarding of storage.boardings)
    for (const { tier, group, slot } of boarding.reservedSlots()) own(tier, group, slot, 'a move under way');
  const queued = new Set<number>();
  tiers.forEach(({ groups }, tier) => {
    groups.forEach((group, index) => {
      const name = `pool group ${index} in tier ${tier}`;
      for (const page of group.leaving()) {
        const isHome = pages.tier[page] === tier && storage.groupIn(tier, pages.lifecycle[page]) === index;
        expect(!queued.has(page), () => `page ${page} is queued twice`);
        expect(isHome, () => `page ${page} waits in the queue of ${name}`);
        queued.add(page);
      }
      const { droppable, held } = group;
      expect([...droppable].length === droppable.count, () => `${name} counts ${droppable.count} droppable pages in its queue`);
      expect([...held].length === held.count, () => `${name} counts ${held.count} held pages in its queue`);
      for (const page of held)
        expect(pages.queued[page] === QUEUED_HELD, () => `page ${page} of ${name} waits as held and is not`);
    });
  });
  for (const page of pages) {
    own(pages.tier[page], storage.groupIn(pages.tier[page], pages.lifecycle[page]), pages.slot[page], `page ${page}`);
    const expected = queueOf(state, page);
    expect(queued.has(page) === (expected !== QUEUED_NOT), () => `page ${page} is ${queued.has(page) ? '' : 'not '}queued`);
    expect(
      pages.queued[page] === expected,
      () => `page ${page} is marked as queued ${pages.queued[page]} instead of ${expected}`,
    );
  }
  tiers.forEach(({ groups }, tier) => {
    groups.forEach(({ slots }, group) => {
      const owned = owners[tier][group].size;
      expect(
        slots.free + owned === slots.slots,
        () => `pool group ${group} in tier ${tier}: ${slots.free} free and ${owned} owned of ${slots.slots} slots`,
      );
    });
  });
  expect(staging.free <= staging.limit, () => `${staging.free - staging.limit} more bytes landed than set out`);
  expect(landings.any || staging.free === staging.limit, () => 'nothing is under way, but bytes are counted as such');
}

/** As what a page should wait in the queue of its tier. */
function queueOf({ storage }: ManagerState, page: number): number {
  const { block, holds, locks, pins, tier } = storage.pages;
  if (locks[page] > 0 || pins[page] > 0) return QUEUED_NOT;
  if (holds[page] === 0) return block[page] === NONE ? QUEUED_NOT : QUEUED_DROPPABLE;
  const mayLeave = tier[page] < storage.lastTier && storage.tiers[tier[page]].kind !== 'disk' && !storage.landings.has(page);
  return mayLeave ? QUEUED_HELD : QUEUED_NOT;
}

/** Lengths are in order; active requests have state, and blocks as `checkBlocks` says. */
function checkRequests(state: ManagerState, expect: Expect): void {
  for (const request of state.open) {
    const name = `request ${request.id ?? ''}`;
    const ordered = request.committed <= request.history && request.history <= request.capacity;
    expect(ordered, () => `${name}: ${request.committed} committed, ${request.history} history, ${request.capacity} capacity`);
    expect(
      request.tokens.length === request.committed,
      () => `${name} keeps ${request.tokens.length} tokens of ${request.committed} committed`,
    );
    for (const group of request.groups) {
      expect(
        group.numBeams === request.beamWidth,
        () => `${name}: group ${group.rules.id} has ${group.numBeams} rows for ${request.beamWidth} beams`,
      );
      if (group.isAttention) checkBlocks(state, request, group, name, expect);
      else {
        for (let beam = 0; beam < group.numBeams; beam++) {
          const hasState = group.row(beam).statePage !== NONE;
          expect(
            request.status !== 'active' || hasState,
            () => `${name}: beam ${beam} is active without state of group ${group.rules.id}`,
          );
        }
      }
    }
  }
}

/** A block has pages in all beams or in none; what is written again, or private, is not shared by two; the indices are those of live pages. */
function checkBlocks(state: ManagerState, request: RequestState, group: GroupState, name: string, expect: Expect): void {
  const { tokensPerBlock } = state.config;
  const { pages } = state.storage;
  const fullBlocks = Math.floor(request.history / tokensPerBlock);
  const isPrivate = group.rules.policy === 'private';
  const sharedLimit = group.numBeams === 1 || isPrivate ? 0 : fullBlocks;
  expect(
    group.sharedEnd <= sharedLimit,
    () => `${name}: group ${group.rules.id} shares ${group.sharedEnd} blocks, of ${sharedLimit}`,
  );
  for (let beam = 0; beam < group.numBeams; beam++) {
    const indices = group.indices(request.numBlocks, beam);
    for (let ordinal = 0; ordinal < request.numBlocks; ordinal++) {
      const page = group.page(ordinal, beam);
      const where = () => `${name}: group ${group.rules.id} block ${ordinal}${group.numBeams === 1 ? '' : ` of beam ${beam}`}`;
      expect((page !== NONE) === (group.page(ordinal) !== NONE), () => `${where()} has a page in some beams only`);
      if (page !== NONE && (isPrivate || ordinal >= fullBlocks)) {
        for (let other = 0; other < beam; other++)
          expect(page !== group.page(ordinal, other), () => `${where()} is beam ${other}'s page too`);
      }
      const shown = request.status === 'active' && page !== NONE && group.rules.isLive(ordinal, request.history);
      const index = shown ? pages.slot[page] : NONE;
      expect(indices[ordinal] === index, () => `${where()} shows ${indices[ordinal]} instead of ${index}`);
    }
  }
}
