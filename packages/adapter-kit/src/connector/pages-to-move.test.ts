import { fullAttention, type LayerGroupId, slidingWindow, ssmState } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import type { ConnectorGroup } from './kv-connector.ts';
import { blocksToLoad, blocksToSave, longestLoad, slotOfBlock } from './pages-to-move.ts';

const group = (id: number, lifecycle: ConnectorGroup['lifecycle']): ConnectorGroup => ({
  groupId: id as LayerGroupId,
  lifecycle,
  layerIds: [id],
  pageBytes: 8,
});
const full = group(0, fullAttention());
const windowed = group(1, slidingWindow(8, { numSinkBlocks: 1 }));
const state = group(2, ssmState('required'));
const extra = group(3, fullAttention({ policy: 'optional' }));

describe('what a request needs from outside', () => {
  test('is every block for full attention, without those that are there', () => {
    expect(blocksToLoad(full, 0, 16, 4)).toEqual([0, 1, 2, 3]);
    expect(blocksToLoad(full, 8, 16, 4)).toEqual([2, 3]);
  });
  test('is sinks and the window for a window', () => {
    expect(blocksToLoad(windowed, 0, 24, 4)).toEqual([0, 4, 5]);
    expect(blocksToLoad(windowed, 4, 24, 4)).toEqual([4, 5]);
    expect(blocksToLoad(windowed, 20, 24, 4)).toEqual([5]);
  });
  test('is the checkpoint at the end for recurrent state, however much is there', () => {
    expect(blocksToLoad(state, 0, 16, 4)).toEqual([3]);
    expect(blocksToLoad(state, 12, 16, 4)).toEqual([3]);
  });
});

describe('what can be kept of a request', () => {
  test('is whole blocks, and state only where a step ends with a block', () => {
    expect(blocksToSave(full, 1, 15, 4)).toEqual([1, 2]);
    expect(blocksToSave(full, 4, 15, 4)).toEqual([]);
    expect(blocksToSave(state, 0, 15, 4)).toEqual([]);
    expect(blocksToSave(state, 0, 16, 4)).toEqual([3]);
    expect(blocksToSave(state, 0, 0, 4)).toEqual([]);
  });
});

describe('the longest prefix that can be loaded', () => {
  const find = (groups: readonly ConnectorGroup[], numTokens: number, computedTokens: number, missing: readonly string[]) =>
    longestLoad(
      groups,
      { numTokens, computedTokens, tokensPerBlock: 4 },
      ({ groupId }, ordinal) => !missing.includes(`${groupId} ${ordinal}`),
    );

  test('leaves the last token to be computed', () => {
    expect(find([full], 16, 0, [])).toEqual({ end: 12, groups: [0] });
    expect(find([full], 17, 0, [])).toEqual({ end: 16, groups: [0] });
    expect(find([full], 17, 16, [])).toBeNull();
    expect(find([full], 4, 0, [])).toBeNull();
  });
  test('ends where every required group can continue', () => {
    const all = [full, windowed, state];
    expect(find(all, 25, 0, ['0 3'])).toEqual({ end: 12, groups: [0, 1, 2] });
    expect(find(all, 25, 0, ['0 3', '2 2'])).toEqual({ end: 8, groups: [0, 1, 2] });
    expect(find(all, 25, 0, ['1 1', '1 2'])).toEqual({ end: 24, groups: [0, 1, 2] });
    expect(find(all, 25, 0, ['1 0'])).toBeNull();
  });
  test('is not shortened by an optional group, which is named where it is complete', () => {
    expect(find([full, extra], 17, 0, ['3 3'])).toEqual({ end: 16, groups: [0] });
    expect(find([full, extra], 17, 0, [])).toEqual({ end: 16, groups: [0, 3] });
  });
});

test('state has one slot, whatever the block', () => {
  const blocks = [[5, -1, 7], undefined, [9]];
  expect([slotOfBlock(full, blocks, 2), slotOfBlock(full, blocks, 1), slotOfBlock(full, blocks, 3)]).toEqual([7, -1, -1]);
  expect([slotOfBlock(windowed, blocks, 0), slotOfBlock(state, blocks, 6)]).toEqual([-1, 9]);
});
