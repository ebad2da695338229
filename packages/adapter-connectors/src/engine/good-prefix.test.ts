import type { ConnectorLayout } from '@bufferwise/adapter-kit';
import { fullAttention, type LayerGroupId, slidingWindow, ssmState } from '@bufferwise/core-policy';
import { expect, test } from 'vitest';
import { goodPrefix } from './good-prefix.ts';

const layoutOf = (lifecycles: readonly ConnectorLayout['groups'][number]['lifecycle'][]): ConnectorLayout => ({
  modelFingerprint: 'model',
  tokensPerBlock: 4,
  groups: lifecycles.map((lifecycle, id) => ({ groupId: id as LayerGroupId, lifecycle, layerIds: [id], pageBytes: 4 })),
});
const failed = (groupId: number, slot: number) => [{ groupId: groupId as LayerGroupId, slot }];
const attention = layoutOf([fullAttention(), slidingWindow(8), fullAttention({ policy: 'optional' })]);
const blocks = [
  [0, 1, 2, 3],
  [0, 1, 2, 3],
  [0, 1, 2, 3],
];

test('a failed page of one group says nothing of the same slot of another', () => {
  expect(goodPrefix(attention, { blocks, tokens: 16 }, failed(0, 3))).toEqual({ end: 12, groups: [0, 1, 2] });
  // The window at 16 needs blocks 2 and 3, and at 12 blocks 1 and 2.
  expect(goodPrefix(attention, { blocks, tokens: 16 }, failed(1, 3))).toEqual({ end: 12, groups: [0, 1, 2] });
  expect(goodPrefix(attention, { blocks, tokens: 16 }, failed(1, 0))).toMatchObject({ end: 16 });
});

test('every sharer of a failed page comes out shorter, and nobody else', () => {
  const other = [[0, 1, 7, 8], [5, 6, 7, 8], undefined];
  expect(goodPrefix(attention, { blocks: other, tokens: 15 }, failed(0, 1))).toEqual({ end: 4, groups: [0, 1] });
  expect(goodPrefix(attention, { blocks: other, tokens: 15 }, failed(0, 3))).toEqual({ end: 15, groups: [0, 1] });
});

test('an optional page that failed costs its group, and no tokens', () => {
  expect(goodPrefix(attention, { blocks, tokens: 16 }, failed(2, 3))).toEqual({ end: 16, groups: [0, 1] });
});

test('recurrent state is good where it was loaded for, and nowhere before', () => {
  const hybrid = layoutOf([fullAttention(), ssmState('required')]);
  const held = [[0, 1, 2, 3], [9]];
  expect(goodPrefix(hybrid, { blocks: held, tokens: 16 }, failed(0, 3))).toEqual({ end: 0, groups: [] });
  expect(goodPrefix(hybrid, { blocks: held, tokens: 16 }, failed(1, 9))).toEqual({ end: 0, groups: [] });
  expect(goodPrefix(hybrid, { blocks: held, tokens: 16 }, failed(1, 3))).toEqual({ end: 16, groups: [0, 1] });
});

test('a window that has moved on cannot go back to where its pages are gone', () => {
  const moved = [
    [0, 1, 2, 3],
    [-1, -1, 2, 3],
    [0, 1, 2, 3],
  ];
  expect(goodPrefix(attention, { blocks: moved, tokens: 16 }, failed(1, 3))).toEqual({ end: 0, groups: [] });
});
