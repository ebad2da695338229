import { describe, expect, test } from 'vitest';
import { NONE } from '../columns.ts';
import { BlockTable } from './block-table.ts';
import { TokenBuffer } from './token-seq.ts';

const digest = (last: number) => Uint8Array.from({ length: 32 }, (_, i) => (i < 31 ? 9 : last));

function tableWith(...pieces: (number | Uint8Array)[][]) {
  const table = new BlockTable(4, 2);
  const blocks = pieces.map((piece) => table.create(0, TokenBuffer.from(piece), 0, piece.length));
  return { table, blocks };
}

describe('a block', () => {
  test('begins without links and pages', () => {
    const { table, blocks } = tableWith([1, 2]);
    const [block] = blocks;
    expect(
      [table.parent, table.childRoot, table.lower, table.higher, table.nextSibling, table.previousSibling].map(
        (column) => column[block],
      ),
    ).toEqual(new Array(6).fill(NONE));
    expect([table.firstPage(block, 0), table.firstPage(block, 1), table.numPages[block]]).toEqual([NONE, NONE, 0]);
    expect([table.numTokens[block], table.tokenAt(block, 0), table.tokenAt(block, 1)]).toEqual([2, 1, 2]);
  });

  test('keeps the run of tokens it was given, from the middle of a longer one', () => {
    const table = new BlockTable(4, 1);
    const block = table.create(1, TokenBuffer.from([0, 1, 2, 3, 4, 5, 6, 7]), 4, 4);
    expect([0, 1, 2, 3].map((i) => table.tokenAt(block, i))).toEqual([4, 5, 6, 7]);
  });

  test('that is gone is not live, and its id comes back under another generation', () => {
    const { table, blocks } = tableWith([1, 2], [3]);
    const [block] = blocks;
    const generation = table.generation[block];
    table.destroy(block);
    expect([table.isLive(block), table.count]).toEqual([false, 1]);
    expect(table.create(0, TokenBuffer.from([5]), 0, 1)).toBe(block);
    expect(table.generation[block]).not.toBe(generation);
    expect([table.isLive(block), table.tokenAt(block, 0), table.count]).toEqual([true, 5, 2]);
  });

  test('that follows one with a digest on the same id has none', () => {
    const { table, blocks } = tableWith([digest(1), 2]);
    table.destroy(blocks[0]);
    const next = table.create(0, TokenBuffer.from([0x09090909, 2]), 0, 2);
    expect(table.commonPrefix(next, TokenBuffer.from([0x09090909, 2]), 0, 2)).toBe(2);
    expect(table.commonPrefix(next, TokenBuffer.from([digest(1), 2]), 0, 2)).toBe(0);
  });

  test('survives that the table grows', () => {
    const table = new BlockTable(4, 1);
    const blocks = Array.from({ length: 300 }, (_, i) => {
      const block = table.create(i, TokenBuffer.from([i, i + 1]), 0, 2);
      table.setHash(block, () => i * 7);
      table.setFirstPage(block, 0, i);
      return block;
    });
    expect(
      blocks.map((block) => [
        table.ordinal[block],
        table.tokenAt(block, 1),
        table.hash[block],
        table.firstPage(block, 0),
        table.parent[block],
      ]),
    ).toEqual(blocks.map((_, i) => [i, i + 1, i * 7, i, NONE]));
    expect([table.count, table.size]).toEqual([300, 300]);
  });
});

describe('the common beginning', () => {
  const { table, blocks } = tableWith([1, 2, 3, 4], [1, 2], [digest(1), 2, 3, 4]);
  test.each([
    [[1, 2, 3, 4], 4, 4],
    [[1, 2, 3, 5], 4, 3],
    [[9, 2, 3, 4], 4, 0],
    [[1, 2, 3, 4], 3, 3],
    [[1, 2, 3, 4], 0, 0],
  ])('of a full block with %j, looking at %i tokens, is %i tokens', (tokens, limit, common) => {
    expect(table.commonPrefix(blocks[0], TokenBuffer.from(tokens), 0, limit)).toBe(common);
  });

  test('ends where the block ends', () => {
    expect(table.commonPrefix(blocks[1], TokenBuffer.from([1, 2, 3, 4]), 0, 4)).toBe(2);
  });

  test('ends before a digest that differs in its last byte, and before an id that looks like a digest', () => {
    expect(table.commonPrefix(blocks[2], TokenBuffer.from([digest(1), 2, 3, 4]), 0, 4)).toBe(4);
    expect(table.commonPrefix(blocks[2], TokenBuffer.from([digest(2), 2, 3, 4]), 0, 4)).toBe(0);
    expect(table.commonPrefix(blocks[2], TokenBuffer.from([0x09090909, 2, 3, 4]), 0, 4)).toBe(0);
    expect(table.commonPrefix(blocks[0], TokenBuffer.from([1, digest(1), 3, 4]), 0, 4)).toBe(1);
  });
});

test('blocks stand in the order of their tokens: by id, an id before a digest that begins like it, a beginning before what it begins', () => {
  const ordered = [[0], [0, 5], [0, 5, 1], [0x09090909, 3], [digest(1), 1], [digest(1), 2], [digest(2), 0], [0xffffffff]];
  const { table, blocks } = tableWith(...ordered);
  for (let i = 0; i < blocks.length; i++) {
    for (let j = 0; j < blocks.length; j++) {
      expect(Math.sign(table.compare(blocks[i], blocks[j])), `${i} against ${j}`).toBe(Math.sign(i - j));
      const piece = TokenBuffer.from(ordered[j]);
      expect(Math.sign(table.compareWith(blocks[i], piece, 0, piece.length)), `${i} against the tokens of ${j}`).toBe(
        Math.sign(i - j),
      );
    }
  }
});
