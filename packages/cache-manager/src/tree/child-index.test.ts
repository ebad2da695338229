import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NONE } from '../columns.ts';
import { type BlockId, BlockTable } from './block-table.ts';
import { ChildIndex } from './child-index.ts';
import { TokenBuffer } from './token-seq.ts';

function blockUnder(blocks: BlockTable, parent: BlockId, hash: number): BlockId {
  const block = blocks.create(0, TokenBuffer.from([1]), 0, 1);
  blocks.setHash(block, () => hash);
  blocks.parent[block] = parent;
  return block;
}

/** All blocks that a walk for (parent, hash) meets. */
function walk(index: ChildIndex, parent: BlockId, hash: number): BlockId[] {
  const met: BlockId[] = [];
  for (let at = index.start(parent, hash); index.candidate(at) !== NONE; at++) met.push(index.candidate(at));
  return met;
}

test('a walk meets the children of that parent with that hash, and may meet others', () => {
  const blocks = new BlockTable(4, 1);
  const index = new ChildIndex(blocks);
  const inserted = [0, 1, 2].flatMap((parent) => [7, 7, 8].map((hash) => blockUnder(blocks, parent, hash)));
  for (const block of inserted) index.insert(block);
  expect(walk(index, 1, 7)).toEqual(expect.arrayContaining([inserted[3], inserted[4]]));
  expect(walk(index, 2, 8)).toContain(inserted[8]);
});

test('a walk finds nothing in an empty index', () => {
  expect(walk(new ChildIndex(new BlockTable(4, 1)), 0, 0)).toEqual([]);
});

test('whatever is inserted and removed in whatever order, exactly what is in the index is met', () => {
  const anyStep = fc.record({ remove: fc.boolean(), parent: fc.nat(2), hash: fc.nat(3), choice: fc.nat() });
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 400 }), (steps) => {
      const blocks = new BlockTable(4, 1);
      const index = new ChildIndex(blocks);
      const inside: BlockId[] = [];
      for (const { remove, parent, hash, choice } of steps) {
        if (remove && inside.length > 0) {
          const [block] = inside.splice(choice % inside.length, 1);
          index.remove(block);
          blocks.destroy(block);
        } else {
          const block = blockUnder(blocks, parent, hash);
          index.insert(block);
          inside.push(block);
        }
      }
      for (const parent of [0, 1, 2]) {
        for (const hash of [0, 1, 2, 3]) {
          const expected = inside.filter((block) => blocks.parent[block] === parent && blocks.hash[block] === hash);
          const met = walk(index, parent, hash).filter((block) => blocks.parent[block] === parent && blocks.hash[block] === hash);
          expect(met.sort()).toEqual(expected.sort());
        }
      }
      const everything = walkAll(index, blocks);
      expect(everything.sort()).toEqual([...inside].sort());
    }),
    { numRuns: 60 },
  );
});

function walkAll(index: ChildIndex, blocks: BlockTable): BlockId[] {
  const met = new Set<BlockId>();
  for (let parent = 0; parent < 3; parent++)
    for (let hash = 0; hash < 4; hash++) for (const block of walk(index, parent, hash)) met.add(block);
  for (const block of met) expect(blocks.isLive(block)).toBe(true);
  return [...met];
}
