import { defineCacheConfig } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { full, model, recurrent, seq, windowed } from '../../test/support/stage.ts';
import { HostPageDevice, KvCacheManager } from '../index.ts';
import type { ManagerState } from '../manager-state.ts';
import { checkInvariants, InvariantError } from './index.ts';
import { stateOf } from './manager-registry.ts';

/** A manager with one active request of nine tokens, eight of them committed, and one closed donor of another text. */
async function sound(): Promise<{ manager: KvCacheManager; state: ManagerState }> {
  const config = defineCacheConfig(model([full(), windowed(8), recurrent()]));
  const manager = new KvCacheManager({ config, device: new HostPageDevice() });
  const donor = manager.createKvCache();
  await donor.resume();
  donor.resize(6);
  donor.commit([9, 9, 9, 9, 9, 9]);
  donor.close();
  const kv = manager.createKvCache();
  await kv.resume();
  kv.resize(9);
  kv.commit(seq(8));
  checkInvariants(manager);
  return { manager, state: stateOf(manager) };
}

const request = (state: ManagerState) => [...state.open][0];
const block = (state: ManagerState) => request(state).block(0);

describe('a contradiction is found', () => {
  test.each<[string, (state: ManagerState) => void, RegExp]>([
    [
      'a page that counts a hold too many',
      (state) => state.storage.pages.holds[request(state).groups[0].page(0)]++,
      /counts 2 holds and has 1/,
    ],
    [
      'a slot with two owners',
      (state) => {
        const { slot } = state.storage.pages;
        slot[request(state).groups[0].page(0)] = slot[request(state).groups[0].page(1)];
      },
      /belongs to page .* and to page/,
    ],
    [
      'a slot in use that is free',
      (state) => {
        state.storage.poolGroups[0].slots.release(state.storage.pages.slot[request(state).groups[0].page(0)]);
      },
      /is free and belongs to/,
    ],
    ['a slot that nobody owns', (state) => void state.storage.takeSlot(0), /free and .* owned of/],
    [
      'a held page in the queue',
      (state) => state.storage.poolGroups[0].queue.push(request(state).groups[0].page(0)),
      /is queued/,
    ],
    [
      'a droppable page outside the queue',
      (state) => state.storage.poolGroups[0].queue.remove(state.storage.poolGroups[0].queue.first()),
      /is not queued/,
    ],
    [
      'a page that nobody holds or lists',
      (state) => {
        const page = state.storage.createHeld(0, 35);
        state.storage.pages.holds[page] = 0;
      },
      /neither held nor listed/,
    ],
    ['an index of another slot', (state) => request(state).groups[0].showIndex(1, 77), /block 1 shows 77/],
    ['an index where no page is', (state) => request(state).groups[1].showIndex(0, 5), /group 1 block 0 shows 5/],
    [
      'lengths out of order',
      (state) => {
        request(state).history = 3;
      },
      /8 committed, 3 history/,
    ],
    ['tokens that do not add up', (state) => void request(state).tokens.length--, /keeps 7 tokens of 8/],
    [
      'an active request without state',
      (state) => {
        state.storage.release(request(state).groups[2].statePage);
        request(state).groups[2].statePage = -1;
      },
      /active without state/,
    ],
    [
      'a block without pages and children',
      (state) => void state.tree.insertChild(state.tree.ensureRoot('x'), request(state).tokens, 0, 4),
      /neither pages nor children/,
    ],
    [
      'a block that counts its pages wrongly',
      (state) => void state.tree.blocks.numPages[block(state)]++,
      /counts .* pages and has/,
    ],
    [
      'a child that names another parent',
      (state) => {
        state.tree.blocks.parent[block(state)] = 99;
      },
      /does not name its parent/,
    ],
    [
      'siblings out of order',
      (state) => {
        const { tree } = state;
        const root = tree.ensureRoot(request(state).scope);
        const first = tree.order.first(root);
        const second = tree.blocks.nextSibling[first];
        tree.blocks.lower[tree.blocks.childRoot[root]] = -1;
        tree.blocks.childRoot[root] = second;
        tree.blocks.lower[second] = -1;
        tree.blocks.nextSibling[second] = first;
        tree.blocks.nextSibling[first] = -1;
      },
      /out of order|does not name its sibling/,
    ],
    [
      'a page good for more tokens than its block has',
      (state) => {
        state.storage.pages.coverage[state.tree.pageOf(block(state), 0)] = 5;
      },
      /covers 5 of 4/,
    ],
    [
      'a page that names another block',
      (state) => {
        state.storage.pages.block[state.tree.pageOf(block(state), 0)] = 0;
      },
      /does not name its block/,
    ],
    [
      'a block of a wrong ordinal',
      (state) => {
        state.tree.blocks.ordinal[block(state)] = 4;
      },
      /has ordinal 4/,
    ],
    ['a block that nobody reaches', (state) => void state.tree.blocks.create(0, request(state).tokens, 0, 4), /blocks exist/],
  ])('%s', async (_, corrupt, finding) => {
    const { manager, state } = await sound();
    corrupt(state);
    expect(() => checkInvariants(manager)).toThrow(InvariantError);
    expect(() => checkInvariants(manager)).toThrow(finding);
  });
});

test('all findings are told at once', async () => {
  const { manager, state } = await sound();
  request(state).history = 3;
  request(state).groups[0].showIndex(1, 77);
  try {
    checkInvariants(manager);
    expect.unreachable();
  } catch (error) {
    expect((error as InvariantError).findings.length).toBeGreaterThanOrEqual(2);
    expect((error as InvariantError).code).toBe('invariant');
  }
});

test('a closed manager has nothing to check, and what is no manager cannot be checked', async () => {
  const { manager } = await sound();
  await manager.close({ force: true });
  checkInvariants(manager);
  expect(() => checkInvariants({} as KvCacheManager)).toThrow(TypeError);
});
