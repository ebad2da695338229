import { NONE } from '../columns.ts';
import type { ManagerState } from '../manager-state.ts';
import { numRowsOf } from '../request/block-pages.ts';
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

/** Every slot has one owner; every page is held as often as requests and pins name it; exactly the listed unheld pages are queued. */
function checkPages(state: ManagerState, expect: Expect): void {
  const { pages, poolGroups } = state.storage;
  const holds = new Int32Array(pages.size);
  const owners = poolGroups.map(() => new Map<number, string>());
  const own = (poolGroup: number, slot: number, owner: string) => {
    const other = owners[poolGroup].get(slot);
    expect(other === undefined, () => `slot ${slot} of pool group ${poolGroup} belongs to ${other} and to ${owner}`);
    expect(
      poolGroups[poolGroup].slots.isAllocated(slot),
      () => `slot ${slot} of pool group ${poolGroup} is free and belongs to ${owner}`,
    );
    owners[poolGroup].set(slot, owner);
  };
  for (let page = 0; page < pages.size; page++) holds[page] = state.pins.holdsOf(page);
  for (const request of state.open) {
    for (const group of request.groups) {
      for (let ordinal = 0; ordinal < request.numBlocks; ordinal++) {
        for (let beam = 0; beam < numRowsOf(group, ordinal); beam++)
          if (group.page(ordinal, beam) !== NONE) holds[group.page(ordinal, beam)]++;
      }
      for (let beam = 0; beam < group.numBeams; beam++)
        if (group.row(beam).statePage !== NONE) holds[group.row(beam).statePage]++;
      for (const slot of group.scratchSlots) own(group.rules.poolGroup, slot, `scratch of request ${request.id}`);
    }
  }
  const queued = new Set<number>();
  for (const { droppable } of poolGroups) for (const page of droppable) queued.add(page);
  for (let page = 0; page < pages.size; page++) {
    if (!pages.isLive(page)) continue;
    own(state.groups[pages.lifecycle[page]].poolGroup, pages.slot[page], `page ${page}`);
    const listed = pages.block[page] !== NONE;
    expect(pages.holds[page] === holds[page], () => `page ${page} counts ${pages.holds[page]} holds and has ${holds[page]}`);
    expect(holds[page] > 0 || listed, () => `page ${page} is neither held nor listed`);
    expect(
      holds[page] <= 1 || state.groups[pages.lifecycle[page]].policy !== 'private',
      () => `private page ${page} has ${holds[page]} holders`,
    );
    expect(queued.has(page) === (holds[page] === 0 && listed), () => `page ${page} is ${queued.has(page) ? '' : 'not '}queued`);
  }
  poolGroups.forEach(({ slots, droppable }, index) => {
    expect(
      slots.free + owners[index].size === slots.slots,
      () => `pool group ${index}: ${slots.free} free and ${owners[index].size} owned of ${slots.slots} slots`,
    );
    expect([...droppable].length === droppable.count, () => `pool group ${index} counts ${droppable.count} droppable pages`);
  });
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
