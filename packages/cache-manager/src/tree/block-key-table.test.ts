import { describe, expect, test } from 'vitest';
import { full, seq } from '../../test/support/stage.ts';
import { Grove } from '../../test/support/tree.ts';
import { blockKeys, rootKey } from './block-key.ts';
import { BlockKeyTable } from './block-key-table.ts';
import { scopeKey } from './reuse-scope.ts';

const NO_SCOPE = scopeKey(undefined);

function planted(): { grove: Grove; keys: BlockKeyTable } {
  const grove = new Grove([full()]);
  return { grove, keys: new BlockKeyTable(grove.tree.blocks, (root) => grove.tree.scopeOf(root)) };
}

describe('the key of a block in the tree', () => {
  test('is that of its tokens and everything before', () => {
    const { grove, keys } = planted();
    const blocks = grove.plant(seq(11), [0], NO_SCOPE);
    expect(blocks.map((block) => keys.keyOf(block))).toEqual(blockKeys(seq(11), {}, 4));
  });

  test('is the same whichever block is asked for first', () => {
    const { grove, keys } = planted();
    const blocks = grove.plant(seq(4000), [0], NO_SCOPE);
    const expected = blockKeys(seq(4000), {}, 4);
    for (const ordinal of [700, 999, 0, 998]) expect(keys.keyOf(blocks[ordinal])).toEqual(expected[ordinal]);
  });

  test('has the scope of its root in it', () => {
    const { grove, keys } = planted();
    const scope = { loraId: 7, salt: 2n ** 63n };
    const [block] = grove.plant(seq(4), [0], scopeKey(scope));
    expect(keys.keyOf(block)).toEqual(blockKeys(seq(4), scope, 4)[0]);
    expect(keys.keyOf(grove.tree.root(scopeKey(scope)))).toEqual(rootKey(scope));
  });

  test('has the digests of its tokens in it', () => {
    const { grove, keys } = planted();
    const tokens = [1, 2, new Uint8Array(32).fill(9), 4, 5];
    const blocks = grove.plant(tokens, [0], NO_SCOPE);
    expect(keys.keyOf(blocks[1])).toEqual(blockKeys(tokens, {}, 4)[1]);
  });

  test('is forgotten with the block: another that gets its id has its own', () => {
    const { grove, keys } = planted();
    const [old] = grove.plant(seq(4), [0], NO_SCOPE);
    keys.keyOf(old);
    grove.tree.remove(grove.tree.pageOf(old, 0));
    const block = grove.plant([9, 9, 9, 9], [0], NO_SCOPE)[0];
    const other = grove.plant([8, 8, 8, 8], [0], NO_SCOPE)[0];
    expect([block, other]).toContain(old);
    expect(keys.keyOf(block)).toEqual(blockKeys([9, 9, 9, 9], {}, 4)[0]);
    expect(keys.keyOf(other)).toEqual(blockKeys([8, 8, 8, 8], {}, 4)[0]);
  });

  test('belongs to the caller', () => {
    const { grove, keys } = planted();
    const [block] = grove.plant(seq(4), [0], NO_SCOPE);
    keys.keyOf(block).fill(0);
    expect(keys.keyOf(block)).toEqual(blockKeys(seq(4), {}, 4)[0]);
  });
});
