import { expect } from 'vitest';
import type { KvCacheManager, ManagerSnapshot, PageSnapshot } from '../../src/index.ts';

/**
 * Checks that a snapshot tells one story: what it says of slots, pages, blocks, queues and requests follows from each other, and
 * from what the manager says elsewhere. It reads nothing but the snapshot, so it is a second opinion to `checkInvariants`.
 */
export function checkSnapshot(manager: KvCacheManager): void {
  const snapshot = manager.inspect();
  expect(JSON.parse(JSON.stringify(snapshot)), 'a snapshot after JSON').toEqual(snapshot);
  expect(snapshot.omitted).toEqual({ blocks: 0, pages: 0 });
  const pages = new Map(snapshot.pages.map((page) => [page.id, page]));
  checkHolds(snapshot);
  checkBlocks(snapshot, pages);
  checkSlots(snapshot, pages, manager);
  const { groups, blocks, openRequests } = manager.statistics();
  expect(snapshot.requests.length).toBe(openRequests);
  expect(snapshot.tree.flatMap((scope) => scope.blocks).length).toBe(blocks);
  expect(groups.map(({ groupId }) => snapshot.pages.filter((page) => page.groupId === groupId).length)).toEqual(
    groups.map((group) => group.pages),
  );
}

/** Pages are held as often as requests name them, by exactly those requests. */
function checkHolds({ pages, requests }: ManagerSnapshot): void {
  const holds = new Map<number, number>();
  const owners = new Map<number, Set<number>>();
  for (const { key, groups } of requests) {
    const name = (page: number | null) => {
      if (page === null) return;
      holds.set(page, (holds.get(page) ?? 0) + 1);
      owners.set(page, (owners.get(page) ?? new Set()).add(key));
    };
    for (const { beams, numSharedBlocks } of groups) {
      for (const [beam, { pages: row, state }] of beams.entries()) {
        name(state);
        for (const page of beam === 0 ? row : row.slice(numSharedBlocks)) name(page);
        expect(row.slice(0, numSharedBlocks)).toEqual(beams[0].pages.slice(0, numSharedBlocks));
      }
    }
  }
  expect(pages.map((page) => page.holds)).toEqual(pages.map(({ id }) => holds.get(id) ?? 0));
  expect(pages.map((page) => page.owners)).toEqual(pages.map(({ id }) => [...(owners.get(id) ?? [])]));
}

/** Blocks and pages name each other; parents stand before their children. */
function checkBlocks({ tree, tokensPerBlock }: ManagerSnapshot, pages: ReadonlyMap<number, PageSnapshot>): void {
  const listed = new Set<number>();
  for (const { children, blocks } of tree) {
    const seen = new Map(blocks.map((block) => [block.id, block]));
    expect(blocks.filter(({ parent }) => parent === null).map(({ id }) => id)).toEqual(children);
    for (const [index, { id, parent, ordinal, tokens, numTokens, pages: own, children: behind }] of blocks.entries()) {
      if (parent !== null) expect(blocks.findIndex((block) => block.id === parent)).toBeLessThan(index);
      expect(ordinal).toBe(parent === null ? 0 : (seen.get(parent)?.ordinal ?? 0) + 1);
      expect(tokens.length).toBe(numTokens);
      expect(numTokens === tokensPerBlock || behind.length === 0).toBe(true);
      for (const child of behind) expect(seen.get(child)?.parent).toBe(id);
      for (const page of own) {
        listed.add(page);
        expect(pages.get(page)?.block).toBe(id);
      }
    }
  }
  expect([...pages.values()].filter(({ block }) => block !== null).map(({ id }) => id)).toEqual(
    [...listed].sort((a, b) => a - b),
  );
}

/** Every slot is what the pages and requests say, and what the statistics count; exactly the droppable pages are queued. */
function checkSlots(
  { poolGroups, colderTiers, groups, requests }: ManagerSnapshot,
  pages: ReadonlyMap<number, PageSnapshot>,
  manager: KvCacheManager,
): void {
  const active = new Set(requests.filter(({ status }) => status === 'active').map(({ key }) => key));
  const statistics = manager.storageStatistics(0);
  for (const [index, { slots, numSlots, numFree, queue, slotBytes }] of poolGroups.entries()) {
    const expected = Array.from({ length: numSlots }, (): { state: string; page: number | null } => ({
      state: 'free',
      page: null,
    }));
    for (const { id, groupId, tier, slot, owners } of pages.values()) {
      if (tier !== 0 || groups[groupId].poolGroup !== index) continue;
      expected[slot] = {
        state: owners.some((key) => active.has(key)) ? 'locked' : owners.length > 0 ? 'held' : 'droppable',
        page: id,
      };
    }
    for (const request of requests) {
      for (const { groupId, scratch } of request.groups) {
        if (groups[groupId].poolGroup === index)
          for (const slot of scratch?.slots ?? []) expected[slot] = { state: 'scratch', page: null };
      }
    }
    expect(slots).toEqual(expected);
    const mayLeave = colderTiers.length > 0 ? ['droppable', 'held'] : ['droppable'];
    const leaving = slots.flatMap(({ state, page }) => (mayLeave.includes(state) ? [page as number] : []));
    expect([...queue].sort((a, b) => a - b)).toEqual(leaving.sort((a, b) => a - b));
    const priorities = queue.map((page) => pages.get(page)?.priority ?? -1);
    expect(priorities).toEqual([...priorities].sort((a, b) => a - b));
    expect({ slotBytes, total: numSlots, free: numFree, evictable: queue.length }).toEqual(
      expect.objectContaining({
        slotBytes: statistics[index].slotBytes,
        total: statistics[index].total,
        free: statistics[index].free,
        evictable: statistics[index].evictable,
      }),
    );
  }
}
