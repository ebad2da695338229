import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NONE } from '../columns.ts';
import { type BlockId, BlockTable } from './block-table.ts';
import { SiblingOrder } from './sibling-order.ts';
import { TokenBuffer } from './token-seq.ts';

class Family {
  readonly blocks = new BlockTable(4, 1);
  readonly order = new SiblingOrder(this.blocks);
  readonly parent = this.blocks.create(0, null, 0, 0);

  add(tokens: readonly number[]): BlockId {
    const block = this.blocks.create(1, TokenBuffer.from(tokens), 0, tokens.length);
    this.blocks.parent[block] = this.parent;
    this.order.insert(block);
    return block;
  }

  tokensOf(block: BlockId): number[] | undefined {
    return block === NONE
      ? undefined
      : Array.from({ length: this.blocks.numTokens[block] }, (_, i) => this.blocks.tokenAt(block, i));
  }

  forwards(): number[][] {
    const found: number[][] = [];
    for (let at = this.order.first(this.parent); at !== NONE; at = this.blocks.nextSibling[at])
      found.push(this.tokensOf(at) as number[]);
    return found;
  }

  backwards(): number[][] {
    let last = NONE;
    for (let at = this.order.first(this.parent); at !== NONE; at = this.blocks.nextSibling[at]) last = at;
    const found: number[][] = [];
    for (let at = last; at !== NONE; at = this.blocks.previousSibling[at]) found.push(this.tokensOf(at) as number[]);
    return found;
  }

  seek(tokens: readonly number[]): [number[] | undefined, number[] | undefined] {
    this.order.seek(this.parent, TokenBuffer.from(tokens), 0, tokens.length);
    return [this.tokensOf(this.order.before), this.tokensOf(this.order.behind)];
  }

  depth(at: BlockId = this.blocks.childRoot[this.parent]): number {
    return at === NONE ? 0 : 1 + Math.max(this.depth(this.blocks.lower[at]), this.depth(this.blocks.higher[at]));
  }
}

describe('the children of a block', () => {
  test('stand in the order of their tokens, whatever the order of arrival', () => {
    const family = new Family();
    for (const tokens of [[5], [1, 9], [1, 2], [7, 7, 7, 7], [1, 2, 3]]) family.add(tokens);
    expect(family.forwards()).toEqual([[1, 2], [1, 2, 3], [1, 9], [5], [7, 7, 7, 7]]);
    expect(family.backwards()).toEqual(family.forwards().reverse());
  });

  test('are sought by tokens: the last that stands before, and the first that does not', () => {
    const family = new Family();
    for (const tokens of [[1, 2], [1, 2, 3], [5]]) family.add(tokens);
    expect(family.seek([0])).toEqual([undefined, [1, 2]]);
    expect(family.seek([1])).toEqual([undefined, [1, 2]]);
    expect(family.seek([1, 2])).toEqual([undefined, [1, 2]]);
    expect(family.seek([1, 2, 0])).toEqual([
      [1, 2],
      [1, 2, 3],
    ]);
    expect(family.seek([5, 0])).toEqual([[5], undefined]);
  });

  test('are none at first, and again when the last has gone', () => {
    const family = new Family();
    expect([family.order.first(family.parent), ...family.seek([1])]).toEqual([NONE, undefined, undefined]);
    family.order.remove(family.add([1]));
    expect([family.blocks.childRoot[family.parent], family.order.first(family.parent)]).toEqual([NONE, NONE]);
  });

  test('are found in few steps when ten thousand arrive in order', () => {
    const family = new Family();
    for (let i = 0; i < 10_000; i++) family.add([i]);
    expect(family.depth()).toBeLessThan(60);
  });
});

test('random arrivals and departures keep the order', () => {
  const anyPiece = fc.array(fc.nat(2), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(
      fc.array(fc.record({ piece: anyPiece, leave: fc.boolean(), choice: fc.nat() }), { maxLength: 120 }),
      anyPiece,
      (steps, sought) => {
        const family = new Family();
        const present = new Map<string, BlockId>();
        for (const { piece, leave, choice } of steps) {
          if (leave && present.size > 0) {
            const key = [...present.keys()][choice % present.size];
            const block = present.get(key) as BlockId;
            family.order.remove(block);
            family.blocks.destroy(block);
            present.delete(key);
          } else if (!present.has(JSON.stringify(piece))) present.set(JSON.stringify(piece), family.add(piece));
        }
        const expected = [...present.keys()].map((key) => JSON.parse(key) as number[]).sort(byTokens);
        expect(family.forwards()).toEqual(expected);
        expect(family.backwards()).toEqual([...expected].reverse());
        const [before, behind] = family.seek(sought);
        expect(before).toEqual(expected.filter((piece) => byTokens(piece, sought) < 0).at(-1));
        expect(behind).toEqual(expected.find((piece) => byTokens(piece, sought) >= 0));
      },
    ),
  );
});

function byTokens(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}
