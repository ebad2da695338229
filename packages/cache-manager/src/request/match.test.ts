import { describe, expect, test } from 'vitest';
import { full, recurrent, seq, windowed } from '../../test/support/stage.ts';
import { Grove } from '../../test/support/tree.ts';
import { NONE } from '../columns.ts';
import { TokenBuffer } from '../tree/token-seq.ts';
import { Matcher } from './match.ts';

describe('the match', () => {
  test('of nothing, or of anything under no root, is nothing', () => {
    const grove = new Grove([full()]);
    grove.plant(seq(4));
    expect([grove.match([]), grove.match(seq(4), 'elsewhere')]).toEqual([0, 0]);
    expect(grove.matcher.depths).toEqual({ path: 0, withoutState: 0, usable: 0 });
  });

  test.each([
    [11, 11],
    [12, 12],
    [13, 12],
  ])('of %i tokens beside three full blocks is %i tokens', (length, match) => {
    const grove = new Grove([full()]);
    grove.plant(seq(12));
    expect(grove.match(seq(length))).toBe(match);
  });

  test('ends where the tokens differ, also inside a block', () => {
    const grove = new Grove([full()]);
    grove.plant(seq(12));
    expect(grove.match([0, 1, 2, 3, 4, 5, 99])).toBe(6);
    expect([0, 1].map((ordinal) => grove.matcher.blockAt(ordinal))).toEqual([grove.find(seq(4)), grove.find(seq(8))]);
  });

  test('goes through the sibling that has most in common, among a thousand', () => {
    const grove = new Grove([full()]);
    for (let i = 0; i < 1000; i++) grove.plant([1, i, i, i]);
    expect(grove.match([1, 500, 500, 7])).toBe(3);
    expect(grove.matcher.blockAt(0)).toBe(grove.find([1, 500, 500, 500]));
    expect(grove.match([1, 1000])).toBe(1);
    expect(grove.match([2])).toBe(0);
  });

  test('of a tail takes the partial block that equals it, not a longer one that covers it', () => {
    const grove = new Grove([full()]);
    grove.plant([1, 2, 3, 9]);
    grove.plant([1, 2, 4]);
    grove.match([1, 2, 4]);
    expect(grove.matcher.blockAt(0)).toBe(grove.find([1, 2, 4]));
  });

  test('takes a usable sibling when the block of equal tokens is not usable', () => {
    const grove = new Grove([windowed(8)]);
    grove.plant(seq(8), []);
    grove.tree.link(grove.find(seq(8)), grove.page(0), 1);
    grove.plant([0, 1, 2, 99]);
    expect(grove.match(seq(8))).toBe(3);
    expect(grove.matcher.blockAt(0)).toBe(grove.find([0, 1, 2, 99]));
  });

  test('of siblings that are as good takes one that has the optional state there', () => {
    const grove = new Grove([full(), recurrent('optional')]);
    grove.plant([1, 2, 3, 3]);
    const [withState] = grove.plant([1, 2, 9, 9]);
    grove.plant([1, 2, 5, 5]);
    grove.tree.link(withState, grove.page(1), 2);
    expect(grove.match([1, 2, 4, 4])).toBe(2);
    expect(grove.matcher.blockAt(0)).toBe(withState);
    expect(grove.match([1, 2])).toBe(2);
    expect(grove.matcher.blockAt(0)).toBe(withState);
  });

  test('prefers more tokens to optional state', () => {
    const grove = new Grove([full(), recurrent('optional')]);
    const [withState] = grove.plant([1, 2, 9, 9]);
    grove.tree.link(withState, grove.page(1), 2);
    const [longer] = grove.plant([1, 2, 4, 9]);
    expect(grove.match([1, 2, 4, 4])).toBe(3);
    expect(grove.matcher.blockAt(0)).toBe(longer);
  });

  test('needs the sinks as well as the window', () => {
    const grove = new Grove([windowed(4, 'required', 8)]);
    const blocks = grove.plant(seq(20), []);
    for (const ordinal of [0, 3, 4]) grove.tree.link(blocks[ordinal], grove.page(0), 4);
    expect(grove.match(seq(20))).toBe(4);
    grove.tree.link(blocks[1], grove.page(0), 2);
    expect(grove.match(seq(20))).toBe(6);
    grove.tree.link(blocks[1], grove.page(0), 4);
    expect(grove.match(seq(20))).toBe(20);
  });

  test('is cut back to the last snapshot before a gap of attention, however many snapshots lie behind', () => {
    const grove = new Grove([windowed(4), recurrent()]);
    const blocks = grove.plant(seq(40), [1]);
    for (const ordinal of [0, 1, 2]) grove.tree.link(blocks[ordinal], grove.page(0), 4);
    expect(grove.match(seq(40))).toBe(12);
    expect(grove.matcher.depths).toEqual({ path: 40, withoutState: 12, usable: 12 });
  });
});

describe('the depths tell', () => {
  test('how far the tokens go, how far attention goes, and what is left', () => {
    const grove = new Grove([full(), recurrent()]);
    const blocks = grove.plant(seq(12), [0]);
    grove.tree.link(blocks[0], grove.page(1), 3);
    expect(grove.match(seq(11))).toBe(3);
    expect(grove.matcher.depths).toEqual({ path: 11, withoutState: 11, usable: 3 });
  });

  test('the path before the backoff, the rest behind it', () => {
    const grove = new Grove([full()]);
    grove.plant(seq(12));
    const { tree, groups } = grove;
    for (const [backoff, usable] of [
      [1, 9],
      [2, 8],
      [9, 1],
      [10, 0],
      [11, 0],
    ]) {
      const matcher = new Matcher({ tree, groups, tokensPerBlock: 4, partialReuse: true, backoff });
      expect(matcher.match(tree.root(''), TokenBuffer.from(seq(10)))).toBe(usable);
      expect(matcher.depths).toEqual({ path: 10, withoutState: usable, usable });
    }
  });
});

describe('a backoff', () => {
  test('may fall into the equal blocks from a sibling that reaches further than they do', () => {
    const grove = new Grove([full()]);
    grove.plant(seq(4));
    grove.plant([0, 1, 2, 3, 4, 9, 9, 9]);
    const { tree, groups } = grove;
    const matcher = new Matcher({ tree, groups, tokensPerBlock: 4, partialReuse: true, backoff: 2 });
    expect(matcher.match(tree.root(''), TokenBuffer.from([0, 1, 2, 3, 4, 7]))).toBe(3);
    expect(matcher.blockAt(0)).toBe(grove.find(seq(4)));
  });
});

describe('without partial reuse', () => {
  test('a match ends with a whole block, or with a partial one that equals the rest', () => {
    const grove = new Grove([full()]);
    grove.plant(seq(8));
    grove.plant([0, 1, 2, 3, 9, 9]);
    const { tree, groups } = grove;
    const matcher = new Matcher({ tree, groups, tokensPerBlock: 4, partialReuse: false, backoff: 0 });
    const match = (tokens: number[]) => matcher.match(tree.root(''), TokenBuffer.from(tokens));
    expect([match(seq(7)), match(seq(8)), match([0, 1, 2, 3, 9, 9]), match([0, 1, 2, 3, 9])]).toEqual([4, 8, 6, 4]);
  });
});

test('a matcher that is asked again forgets its last answer', () => {
  const grove = new Grove([full()]);
  grove.plant([1, 2, 3, 9]);
  grove.plant([1, 5, 5, 5, 6, 6]);
  grove.match([1, 2, 3, 4]);
  expect(grove.match([1, 5, 5, 5, 6, 6])).toBe(6);
  expect([0, 1].map((ordinal) => grove.matcher.blockAt(ordinal))).toEqual([
    grove.find([1, 5, 5, 5]),
    grove.find([1, 5, 5, 5, 6, 6]),
  ]);
  expect(grove.find([1, 2, 3, 4])).toBe(NONE);
});

test('a path longer than any before fits', () => {
  const grove = new Grove([full(), windowed(1000)]);
  grove.plant(seq(2000), [0, 1]);
  expect([grove.match(seq(12)), grove.match(seq(2000)), grove.match(seq(1999))]).toEqual([12, 2000, 1999]);
});
