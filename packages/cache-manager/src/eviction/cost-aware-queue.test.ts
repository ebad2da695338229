import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { full, type LayerShape, recurrent, windowed } from '../../test/support/stage.ts';
import { rulesOf } from '../../test/support/tree.ts';
import { NONE } from '../columns.ts';
import { PageTable } from '../page/page-table.ts';
import { type BlockId, BlockTable } from '../tree/block-table.ts';
import { CostAwareQueue } from './cost-aware-queue.ts';
import { EvictionView } from './eviction-view.ts';
import { ANSWER, PROMPT_BODY, PROMPT_END, pageUse } from './page-use.ts';

const TOKENS_PER_BLOCK = 16;

/** A queue over blocks that hang from each other as told, without a tree. */
class Rig {
  readonly pages = new PageTable();
  readonly blocks: BlockTable;
  readonly root: BlockId;
  readonly view: EvictionView;
  readonly queue: CostAwareQueue;

  constructor(layers: readonly LayerShape[] = [full()], slots = 16) {
    const groups = rulesOf(layers, TOKENS_PER_BLOCK);
    this.blocks = new BlockTable(TOKENS_PER_BLOCK, groups.length);
    this.root = this.blocks.create(NONE, null, 0, 0);
    this.view = new EvictionView({
      home: { numSlots: slots, passesDown: false },
      pages: this.pages,
      blocks: this.blocks,
      groups,
    });
    this.queue = new CostAwareQueue(this.view);
  }

  block(parent: BlockId = this.root): BlockId {
    const block = this.blocks.create(this.blocks.ordinal[parent] + 1, null, 0, TOKENS_PER_BLOCK);
    this.blocks.parent[block] = parent;
    this.blocks.pathHash[block] = Math.imul(block + 1, 0x9e3779b1);
    this.blocks.childRoot[parent] = block;
    return block;
  }

  page(
    options: { block?: BlockId; group?: number; priority?: number; use?: number; reuses?: number; coverage?: number } = {},
  ): number {
    const { block = this.block(), group = 0, priority = 35, use = 0, reuses = 0, coverage = TOKENS_PER_BLOCK } = options;
    const page = this.pages.create(group, 0, priority);
    this.pages.block[page] = block;
    this.pages.coverage[page] = coverage;
    this.pages.use[page] = use;
    this.pages.reuses[page] = reuses;
    this.pages.nextInBlock[page] = this.blocks.firstPage(block, group);
    this.blocks.setFirstPage(block, group, page);
    return page;
  }

  pushed(options: Parameters<Rig['page']>[0] = {}): number {
    const page = this.page(options);
    this.queue.push(page);
    return page;
  }

  /** Takes the first page, with its block. */
  evict(): number {
    const page = this.queue.first();
    const block = this.pages.block[page];
    const parent = this.blocks.parent[block];
    this.queue.remove(page);
    this.blocks.setFirstPage(block, this.pages.lifecycle[page], NONE);
    this.pages.destroy(page);
    if (this.blocks.childRoot[parent] === block) {
      this.blocks.childRoot[parent] = NONE;
      const above = this.blocks.firstPage(parent, 0);
      if (above !== NONE && this.pages.holds[above] === 0) this.queue.becameLeaf(above);
    }
    return page;
  }

  evictAll(): number[] {
    const gone: number[] = [];
    while (this.queue.count > 0) gone.push(this.evict());
    return gone;
  }
}

describe('the first to leave', () => {
  test('is none of an empty queue', () => {
    const { queue } = new Rig();
    expect([queue.first(), queue.count, [...queue]]).toEqual([NONE, 0, []]);
  });

  test('is the least recently used, among equals', () => {
    const rig = new Rig();
    const pages = Array.from({ length: 40 }, () => rig.pushed());
    expect(rig.evictAll()).toEqual(pages);
  });

  test('is one of the lowest priority, whatever the others are worth', () => {
    const rig = new Rig();
    const high = rig.pushed({ priority: 36 });
    const dear = rig.pushed({ priority: 35, reuses: 9 });
    const cheap = rig.pushed({ priority: 35, use: pageUse(ANSWER, 0) });
    const low = rig.pushed({ priority: 0, reuses: 9 });
    const gone = rig.evictAll();
    expect([gone[0], gone[3]]).toEqual([low, high]);
    expect(new Set(gone.slice(1, 3))).toEqual(new Set([dear, cheap]));
  });

  test('is one that was never reused, rather than one that was, unless that lies far longer', () => {
    const rig = new Rig();
    const reused = rig.pushed({ reuses: 1 });
    const fresh = Array.from({ length: 6 }, () => rig.pushed());
    expect(rig.evict()).toBe(fresh[0]);
    const gone: number[] = [];
    for (let i = 0; i < 40; i++) {
      gone.push(rig.evict());
      rig.pushed();
    }
    expect(gone.indexOf(reused)).toBeGreaterThan(5);
  });

  test('is not a page whose block others hang from, however low its priority', () => {
    const rig = new Rig();
    const parent = rig.block();
    const child = rig.block(parent);
    const above = rig.pushed({ block: parent, priority: 0 });
    const below = rig.pushed({ block: child, priority: 50 });
    const other = rig.pushed({ priority: 40 });
    expect(rig.evictAll()).toEqual([other, below, above]);
  });

  test('is a page that waits for blocks behind it when nothing else is there: they are held', () => {
    const rig = new Rig();
    const parent = rig.block();
    rig.block(parent);
    const above = rig.pushed({ block: parent });
    expect(rig.queue.first()).toBe(above);
  });

  test('is a page again that waited, was held and came back', () => {
    const rig = new Rig();
    const parent = rig.block();
    const below = rig.page({ block: rig.block(parent) });
    const above = rig.pushed({ block: parent });
    expect(rig.queue.first()).toBe(above);
    rig.queue.remove(above);
    rig.queue.push(below);
    rig.queue.push(above);
    expect(rig.evictAll()).toEqual([below, above]);
  });

  test('stays the same however often it is asked for', () => {
    const rig = new Rig();
    for (let i = 0; i < 10; i++) rig.pushed({ reuses: i % 3, use: pageUse(i % 4, 10 * i) });
    const first = rig.queue.first();
    expect([rig.queue.first(), rig.queue.first(), [...rig.queue][0]]).toEqual([first, first, first]);
  });
});

describe('snapshots', () => {
  /** A path of blocks with a snapshot at the end of each that is named. */
  function pathWith(rig: Rig, ordinals: readonly number[]): number[] {
    const pages: number[] = [];
    let block = rig.root;
    for (let ordinal = 0; ordinal <= Math.max(...ordinals); ordinal++) {
      block = rig.block(block);
      if (ordinals.includes(ordinal)) pages.push(rig.page({ block }));
    }
    return pages;
  }

  test('close behind another leave before those that save much', () => {
    const rig = new Rig([recurrent()]);
    const [far, near] = pathWith(rig, [99, 101]);
    for (const page of [far, near]) rig.queue.push(page);
    expect(rig.evictAll()).toEqual([near, far]);
  });

  test('are worth more once the one before is gone, so that what is left is spread out', () => {
    const rig = new Rig([recurrent()]);
    const pages = pathWith(rig, [7, 15, 23, 31, 39, 47, 55, 63]);
    for (const page of pages) rig.queue.push(page);
    const gone = [rig.evict(), rig.evict(), rig.evict(), rig.evict()];
    expect(gone).toEqual([pages[0], pages[2], pages[4], pages[6]]);
  });

  test('of one block count what lies between them', () => {
    const rig = new Rig([recurrent()]);
    const block = rig.block();
    const early = rig.pushed({ block, coverage: 10 });
    const late = rig.pushed({ block, coverage: 11 });
    expect([rig.evict(), rig.evict()]).toEqual([late, early]);
  });
});

test('pages of a window are worth a share of what the window saves', () => {
  const rig = new Rig([full(), windowed(32)]);
  let block = rig.root;
  for (let ordinal = 0; ordinal < 64; ordinal++) block = rig.block(block);
  const inWindow = rig.pushed({ block, group: 1 });
  const plain = rig.pushed({ group: 0 });
  expect(rig.evictAll()).toEqual([plain, inWindow]);
});

describe('what is learned', () => {
  const body = pageUse(PROMPT_BODY, 100);
  const answer = pageUse(ANSWER, 100);

  /** Lets bodies of prompts come back and answers not, each time after it was evicted. */
  function teach(rig: Rig, rounds: number): void {
    for (let round = 0; round < rounds; round++) {
      for (const use of [body, answer]) {
        const block = rig.block();
        const page = rig.pushed({ block, use });
        rig.queue.remove(page);
        rig.blocks.setFirstPage(block, 0, NONE);
        rig.pages.destroy(page);
        if (use === body) rig.queue.wanted(0, rig.view.contentHashOf(rig.page({ block })));
      }
    }
  }

  test('lets pages of a use that comes back stay longer than of one that does not', () => {
    const rig = new Rig();
    teach(rig, 2000);
    const wanted = rig.pushed({ use: body });
    const unwanted = rig.pushed({ use: answer });
    expect(rig.evictAll()).toEqual([unwanted, wanted]);
  });

  test('says whether a page of the same content was there not long ago, once', () => {
    const rig = new Rig();
    const block = rig.block();
    rig.queue.remove(rig.pushed({ block, use: pageUse(PROMPT_END, 0) }));
    const again = rig.view.contentHashOf(rig.page({ block }));
    expect([rig.queue.wanted(0, again), rig.queue.wanted(0, again), rig.queue.wanted(0, again + 64)]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe('random arrivals and departures', () => {
  const anyStep = fc.record({
    what: fc.constantFrom('push', 'push', 'push', 'hold', 'back', 'evict'),
    priority: fc.constantFrom(0, 35, 35, 35, 80),
    use: fc.nat(19),
    reuses: fc.nat(3),
    hang: fc.boolean(),
    choice: fc.nat(),
  });

  function play(steps: readonly (typeof anyStep extends fc.Arbitrary<infer T> ? T : never)[]): number[] {
    const rig = new Rig([full()], 32);
    const inside: number[] = [];
    const held: number[] = [];
    const gone: number[] = [];
    for (const { what, priority, use, reuses, hang, choice } of steps) {
      if (what === 'push') {
        // Only a block without children may get one: the rig keeps no siblings.
        const leaves = [...inside, ...held]
          .map((page) => rig.pages.block[page])
          .filter((block) => rig.blocks.childRoot[block] === NONE);
        const parent = hang && leaves.length > 0 ? leaves[choice % leaves.length] : rig.root;
        inside.push(rig.pushed({ block: rig.block(parent), priority, use, reuses }));
      } else if (what === 'hold' && inside.length > 0) {
        const [page] = inside.splice(choice % inside.length, 1);
        rig.queue.remove(page);
        rig.pages.holds[page] = 1;
        held.push(page);
      } else if (what === 'back' && held.length > 0) {
        const [page] = held.splice(choice % held.length, 1);
        rig.pages.holds[page] = 0;
        rig.queue.push(page);
        inside.push(page);
      } else if (what === 'evict' && inside.length > 0) {
        const first = rig.queue.first();
        const isLeaf = (page: number) => rig.blocks.childRoot[rig.pages.block[page]] === NONE;
        const leaves = inside.filter(isLeaf);
        expect(inside).toContain(first);
        if (leaves.length > 0) {
          expect(isLeaf(first)).toBe(true);
          expect(rig.pages.priority[first]).toBe(Math.min(...leaves.map((page) => rig.pages.priority[page])));
          inside.splice(inside.indexOf(first), 1);
          gone.push(rig.evict());
        }
      }
      expect(rig.queue.count).toBe(inside.length);
      expect([...rig.queue].sort()).toEqual([...inside].sort());
      expect(rig.queue.first() === NONE).toBe(inside.length === 0);
    }
    return gone;
  }

  test('never lose, repeat or make up a page; a leaf of the lowest priority leaves; the same steps have the same end', () => {
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 150 }), (steps) => {
        expect(play(steps)).toEqual(play(steps));
      }),
      { numRuns: 60 },
    );
  });
});
