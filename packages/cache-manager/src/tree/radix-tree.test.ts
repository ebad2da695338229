import { describe, expect, test } from 'vitest';
import { full, recurrent, seq, windowed } from '../../test/support/stage.ts';
import { Grove } from '../../test/support/tree.ts';
import { NONE } from '../columns.ts';
import { TokenBuffer } from './token-seq.ts';

const F = 0;
const W = 1;

describe('a root', () => {
  test('is there for a scope from the first block on', () => {
    const { tree, ...grove } = new Grove([full()]);
    expect(tree.root('a')).toBe(NONE);
    const root = tree.ensureRoot('a');
    expect([tree.root('a'), tree.ensureRoot('a'), tree.root('b')]).toEqual([root, root, NONE]);
    expect(grove.pages.size).toBe(0);
  });

  test('of one scope has nothing of another', () => {
    const grove = new Grove([full()]);
    grove.plant(seq(4), [F], 'a');
    expect([grove.match(seq(4), 'a'), grove.match(seq(4), 'b')]).toEqual([4, 0]);
  });

  test('goes with its last page', () => {
    const grove = new Grove([full()]);
    const [block] = grove.plant(seq(4), [F], 'a');
    grove.plant(seq(4), [F], 'b');
    grove.tree.remove(grove.tree.pageOf(block, F));
    expect([grove.tree.root('a'), [...grove.tree.roots.keys()], grove.tree.blocks.count]).toEqual([NONE, ['b'], 2]);
  });
});

describe('a child', () => {
  test('is found by exactly its tokens', () => {
    const grove = new Grove([full()]);
    const blocks = grove.plant([1, 2, 3, 4, 5, 6]);
    expect(grove.find([1, 2, 3, 4])).toBe(blocks[0]);
    expect(grove.find([1, 2, 3, 4, 5, 6])).toBe(blocks[1]);
    for (const other of [
      [1, 2, 3],
      [1, 2, 3, 5],
      [1, 2, 3, 4, 5],
      [1, 2, 3, 4, 5, 6, 7],
    ])
      expect(grove.find(other)).toBe(NONE);
  });

  test('is found among a thousand siblings, and after every second of them has gone', () => {
    const grove = new Grove([full()]);
    const blocks = Array.from({ length: 1000 }, (_, i) => grove.plant([1, 2, i, 0])[0]);
    blocks.forEach((block, i) => {
      if (i % 2 > 0) grove.tree.remove(grove.tree.pageOf(block, F));
    });
    blocks.forEach((block, i) => {
      expect(grove.find([1, 2, i, 0])).toBe(i % 2 > 0 ? NONE : block);
    });
  });

  test('is found whether it is the only one, the first of several, or the only one again', () => {
    const grove = new Grove([full()]);
    const [first] = grove.plant([1, 1, 1, 1]);
    expect(grove.find([1, 1, 1, 1])).toBe(first);
    const [second] = grove.plant([2, 2, 2, 2]);
    expect([grove.find([1, 1, 1, 1]), grove.find([2, 2, 2, 2])]).toEqual([first, second]);
    grove.tree.remove(grove.tree.pageOf(first, F));
    expect([grove.find([1, 1, 1, 1]), grove.find([2, 2, 2, 2])]).toEqual([NONE, second]);
    const [third] = grove.plant([3, 3, 3, 3]);
    expect([grove.find([2, 2, 2, 2]), grove.find([3, 3, 3, 3])]).toEqual([second, third]);
    for (const block of [third, second]) grove.tree.remove(grove.tree.pageOf(block, F));
    expect([grove.find([2, 2, 2, 2]), grove.tree.blocks.count]).toEqual([NONE, 0]);
  });

  test('is told by its tokens when every hash is the same: collisions cost time and nothing else', () => {
    const grove = new Grove([full()], { hash: () => 42 });
    const pieces = Array.from({ length: 1000 }, (_, i) => [i, i * 7, 3, i % 10]);
    const blocks = pieces.map((piece) => grove.plant(piece)[0]);
    expect(pieces.map((piece) => grove.find(piece))).toEqual(blocks);
    expect(pieces.map((piece) => grove.match([...piece, 5]))).toEqual(pieces.map(() => 4));
    expect(grove.find([1, 7, 3, 2])).toBe(NONE);
    blocks.forEach((block, i) => {
      if (i % 3 > 0) grove.tree.remove(grove.tree.pageOf(block, F));
    });
    expect(pieces.map((piece) => grove.find(piece) !== NONE)).toEqual(pieces.map((_, i) => i % 3 === 0));
    expect(grove.freed.length).toBe(666);
  });
});

describe('a longer block', () => {
  test('takes over the pages of the partial sibling that it continues, counts unchanged', () => {
    const grove = new Grove([full(), windowed(8), recurrent()]);
    const [tail] = grove.plant([1, 2], [0, 1, 2]);
    const pages = [0, 1, 2].map((group) => grove.tree.pageOf(tail, group));
    const [block] = grove.plant([1, 2, 3, 4], []);
    expect(grove.find([1, 2])).toBe(NONE);
    expect([0, 1, 2].map((group) => grove.tree.pageOf(block, group))).toEqual(pages);
    expect(pages.map((page) => [grove.pages.block[page], grove.pages.coverage[page]])).toEqual(pages.map(() => [block, 2]));
    expect([grove.tree.blocks.numPages[block], grove.freed]).toEqual([3, []]);
  });

  test('takes over all snapshots', () => {
    const grove = new Grove([recurrent()]);
    const [tail] = grove.plant([1, 2, 3], []);
    for (const count of [1, 3]) grove.tree.link(tail, grove.page(0), count);
    const [block] = grove.plant([1, 2, 3, 4], [0]);
    expect([1, 2, 3, 4].map((count) => grove.tree.snapshotAt(block, 0, count) !== NONE)).toEqual([true, false, true, true]);
  });

  test('that is partial itself takes over as well', () => {
    const grove = new Grove([full()]);
    grove.plant([1]);
    const [block] = grove.plant([1, 2], []);
    expect([grove.tree.coverage(block, F), grove.find([1])]).toEqual([1, NONE]);
  });

  test.each([
    ['differs in its last token', [1, 3]],
    ['is not its beginning', [2]],
    ['is full', [1, 2, 3, 5]],
  ])('leaves a sibling alone that %s', (_, sibling) => {
    const grove = new Grove([full()]);
    const [other] = grove.plant(sibling);
    grove.plant([1, 2, 3, 4], []);
    expect([grove.find(sibling), grove.tree.coverage(other, F)]).toEqual([other, sibling.length]);
  });

  test('finds the one it continues among many that begin alike', () => {
    const grove = new Grove([full()]);
    for (let i = 0; i < 50; i++) grove.plant([1, i]);
    const [block] = grove.plant([1, 30, 2, 2], []);
    expect([grove.tree.coverage(block, F), grove.find([1, 30]), grove.children(grove.tree.root('')).length]).toEqual([
      2,
      NONE,
      50,
    ]);
    expect(grove.tree.hasBeginning(grove.tree.root(''), TokenBuffer.from([1, 31, 9, 9]), 0, 4)).toBe(true);
    expect(grove.tree.hasBeginning(grove.tree.root(''), TokenBuffer.from([1, 30, 9, 9]), 0, 4)).toBe(false);
    expect(grove.tree.hasBeginning(grove.tree.root(''), TokenBuffer.from([1, 31]), 0, 2)).toBe(false);
  });
});

describe('a page', () => {
  test('of attention that is good for more replaces the one that was there', () => {
    const grove = new Grove([full()]);
    const [block] = grove.plant([1, 2, 3, 4], []);
    const narrow = grove.page(F);
    const wide = grove.page(F);
    grove.tree.link(block, narrow, 2);
    expect([grove.tree.wants(block, F, 2), grove.tree.wants(block, F, 3)]).toEqual([false, true]);
    grove.tree.link(block, wide, 3);
    expect([grove.tree.pageOf(block, F), grove.tree.coverage(block, F), grove.freed]).toEqual([wide, 3, [narrow]]);
    expect(grove.tree.blocks.numPages[block]).toBe(1);
  });

  test('that was replaced while somebody holds it stays with its holder', () => {
    const grove = new Grove([full()]);
    const [block] = grove.plant([1, 2, 3, 4], []);
    const held = grove.page(F);
    grove.tree.link(block, held, 2);
    grove.pages.holds[held] = 1;
    grove.tree.link(block, grove.page(F), 4);
    expect([grove.freed, grove.pages.block[held], grove.tree.heldLosses]).toEqual([[], NONE, 1]);
  });

  test('of state stands beside those of other counts', () => {
    const grove = new Grove([recurrent()]);
    const [block] = grove.plant([1, 2, 3, 4], []);
    const pages = [2, 4, 1].map((count) => {
      const page = grove.page(0);
      expect(grove.tree.wants(block, 0, count)).toBe(true);
      grove.tree.link(block, page, count);
      expect(grove.tree.wants(block, 0, count)).toBe(false);
      return page;
    });
    expect([4, 3, 2, 1, 0].map((limit) => grove.tree.largestSnapshot(block, 0, limit))).toEqual([4, 2, 2, 1, 0]);
    grove.tree.remove(pages[1]);
    expect([4, 2, 1].map((limit) => grove.tree.largestSnapshot(block, 0, limit))).toEqual([2, 2, 1]);
    expect([grove.tree.snapshotAt(block, 0, 4), grove.freed]).toEqual([NONE, [pages[1]]]);
  });
});

describe('losing a page', () => {
  test('that every match needs takes the block and all behind it along', () => {
    const grove = new Grove([full(), windowed(4)]);
    const blocks = grove.plant(seq(16), [F, W]);
    grove.plant([0, 1, 2, 3, 9, 9, 9, 9], [F, W]);
    grove.tree.remove(grove.tree.pageOf(blocks[1], F));
    expect([4, 8, 12, 16].map((count) => grove.find(seq(count)) !== NONE)).toEqual([true, false, false, false]);
    expect([grove.freed.length, grove.find([0, 1, 2, 3, 9, 9, 9, 9]) !== NONE]).toEqual([6, true]);
  });

  test('of a required sink block does the same, of a block behind the sinks does not', () => {
    for (const [ordinal, left] of [
      [0, 0],
      [1, 4],
    ]) {
      const grove = new Grove([windowed(4, 'required', 4)]);
      const blocks = grove.plant(seq(16), [0]);
      grove.tree.remove(grove.tree.pageOf(blocks[ordinal], 0));
      expect(grove.tree.blocks.count - grove.tree.roots.size).toBe(left);
    }
  });

  test.each([
    ['a required window', windowed(4)],
    ['optional attention', full('optional')],
    ['optional sinks', windowed(4, 'optional', 8)],
    ['state', recurrent()],
  ])('of %s takes nothing else', (_, shape) => {
    const grove = new Grove([full(), shape]);
    const blocks = grove.plant(seq(16), [F, 1]);
    const page = grove.tree.pageOf(blocks[0], 1);
    grove.tree.remove(page);
    expect([grove.freed, grove.tree.blocks.count]).toEqual([[page], 5]);
    expect(blocks.map((block) => grove.tree.pageOf(block, F) !== NONE)).toEqual([true, true, true, true]);
  });

  test('lets go of blocks that have neither pages nor children, up to the first that has', () => {
    const grove = new Grove([windowed(4)]);
    const blocks = grove.plant(seq(16), []);
    const pages = [0, 3].map((ordinal) => {
      const page = grove.page(0);
      grove.tree.link(blocks[ordinal], page, 4);
      return page;
    });
    grove.tree.remove(pages[1]);
    expect(blocks.map((block) => grove.tree.blocks.isLive(block))).toEqual([true, false, false, false]);
    grove.tree.remove(pages[0]);
    expect([grove.tree.blocks.count, grove.tree.roots.size]).toEqual([0, 0]);
  });

  test('keeps a block without pages as long as one behind it has some', () => {
    const grove = new Grove([windowed(4)]);
    const blocks = grove.plant(seq(8), [0]);
    grove.tree.remove(grove.tree.pageOf(blocks[0], 0));
    expect(grove.find(seq(8))).toBe(blocks[1]);
  });

  test('takes pages that are held out of the tree, but not from their holders', () => {
    const grove = new Grove([full()]);
    const blocks = grove.plant(seq(12), [F]);
    const pages = blocks.map((block) => grove.tree.pageOf(block, F));
    grove.pages.holds[pages[1]] = 2;
    grove.tree.remove(pages[0]);
    expect([...grove.freed].sort()).toEqual([pages[0], pages[2]].sort());
    expect([grove.pages.isLive(pages[1]), grove.pages.block[pages[1]], grove.tree.heldLosses]).toEqual([true, NONE, 1]);
  });
});
