import { describe, expect, test } from 'vitest';
import { full, recurrent, windowed } from '../../test/support/stage.ts';
import { rulesOf } from '../../test/support/tree.ts';

const liveBlocks = (layer: Parameters<typeof rulesOf>[0][number], numTokens: number) => {
  const [rules] = rulesOf([layer]);
  return Array.from({ length: 8 }, (_, ordinal) => ordinal).filter((ordinal) => rules.isLive(ordinal, numTokens));
};

describe('a block is live', () => {
  test.each([
    ['under full attention, always', full(), 31, [0, 1, 2, 3, 4, 5, 6, 7]],
    ['under a window, from the block of the first token that the next one sees', windowed(8), 23, [4, 5, 6, 7]],
    ['under the same window, one token later and one block fewer', windowed(8), 27, [5, 6, 7]],
    ['under a window with a sink, also as the sink', windowed(6, 'required', 1), 20, [0, 3, 4, 5, 6, 7]],
    ['while the window still reaches the beginning', windowed(8, 'required', 4), 3, [0, 1, 2, 3, 4, 5, 6, 7]],
  ])('%s', (_, layer, numTokens, expected) => {
    expect(liveBlocks(layer, numTokens)).toEqual(expected);
  });
});

describe('a request keeps', () => {
  test.each([
    ['an optional window at its last whole block, with minimal snapshots', windowed(2, 'optional'), true, 9, 8],
    ['the same where a block ends', windowed(2, 'optional'), true, 8, 8],
    ['an optional window where it stands, without them', windowed(2, 'optional'), false, 9, 9],
    ['a required window where it stands', windowed(2), true, 9, 9],
    ['optional full attention, of which nothing leaves', full('optional'), true, 9, 9],
  ])('%s', (_, layer, minSnapshot, history, kept) => {
    expect(rulesOf([layer], 4, minSnapshot)[0].keptAt(history)).toBe(kept);
  });
});

describe('every match needs', () => {
  test.each([
    ['each block of required full attention', full(), [true, true]],
    ['the sinks of a required window', windowed(4, 'required', 4), [true, false]],
    ['no block of a window without sinks', windowed(4), [false, false]],
    ['none of optional attention', full('optional'), [false, false]],
    ['none of optional sinks', windowed(4, 'optional', 8), [false, false]],
    ['none of state', recurrent(), [false, false]],
  ])('%s', (_, layer, expected) => {
    const [rules] = rulesOf([layer]);
    expect([0, 1].map((ordinal) => rules.everyMatchNeeds(ordinal))).toEqual(expected);
  });
});

test('groups have the ids of their lifecycles and carry what a step asks for', () => {
  const rules = rulesOf([full(), windowed(6, 'optional', 5), recurrent('private')]);
  expect(rules.map(({ id, kind, policy, windowSize, numSinkBlocks }) => [id, kind, policy, windowSize, numSinkBlocks])).toEqual([
    [0, 'attention', 'required', null, 0],
    [1, 'attention', 'optional', 6, 2],
    [2, 'ssm', 'private', null, 0],
  ]);
});
