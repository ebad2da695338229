import { fullAttention, type Lifecycle, type ReusePolicy, slidingWindow, ssmState } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { planTransfer, type ReceiverGroup } from './plan-transfer.ts';
import type { TransferLayout } from './transfer-layout.ts';

const NOTHING: ReceiverGroup = { endpoint: 0, coverage: [] };

function layoutOf(...lifecycles: Lifecycle[]): TransferLayout {
  return { tokensPerBlock: 4, groups: lifecycles.map((lifecycle, i) => ({ lifecycle, buffers: [], pageBytes: 10 ** i })) };
}

/** Blocks of the first group that travel. */
function blocks(lifecycle: Lifecycle, has: ReceiverGroup, handover: number): number[] {
  return planTransfer(layoutOf(lifecycle), [has], handover).pages.map(({ block }) => block);
}

const upTo = (endpoint: number): ReceiverGroup => ({ endpoint, coverage: [[0, endpoint]] });

describe('what travels of a group', () => {
  test.each<[string, Lifecycle, ReceiverGroup, number, number[]]>([
    ['all blocks to who has nothing', fullAttention(), NOTHING, 12, [0, 1, 2]],
    ['the partial last block too', fullAttention(), NOTHING, 13, [0, 1, 2, 3]],
    ['nothing to who has everything', fullAttention(), upTo(13), 13, []],
    ['the tail to who has the beginning', fullAttention(), upTo(8), 13, [2, 3]],
    ['a block that is there in part', fullAttention(), upTo(7), 12, [1, 2]],
    ['a last block that is there as far as it is needed', fullAttention(), upTo(14), 13, []],
    ['a hole in what is there', fullAttention(), { endpoint: 12, coverage: [[0, 4], [8, 12]] }, 12, [1]], // biome-ignore format: a row
    ['the window only', slidingWindow(4), NOTHING, 16, [3]],
    ['the window at the border, a token later', slidingWindow(4), NOTHING, 17, [3, 4]],
    ['window and sinks', slidingWindow(4, { numSinkBlocks: 1 }), NOTHING, 16, [0, 3]],
    ['the window, of which a part is there', slidingWindow(8), { endpoint: 16, coverage: [[8, 12]] }, 16, [3]],
    ['the state', ssmState(), NOTHING, 16, [3]],
    ['no state to who has the very one', ssmState(), { endpoint: 16, coverage: [[16, 16]] }, 16, []],
    ['the state to who has one a token before', ssmState(), { endpoint: 15, coverage: [[15, 15]] }, 16, [3]],
  ])('%s', (_, lifecycle, has, handover, expected) => {
    expect(blocks(lifecycle, has, handover)).toEqual(expected);
  });

  test('optional pages travel like required ones, private ones always', () => {
    const policies: [ReusePolicy, number[]][] = [
      ['required', [2]],
      ['optional', [2]],
      ['private', [0, 1, 2]],
    ];
    for (const [policy, expected] of policies) expect(blocks(fullAttention({ policy }), upTo(8), 12), policy).toEqual(expected);
    expect(blocks(ssmState('private'), { endpoint: 12, coverage: [] }, 12)).toEqual([2]);
  });
});

test('what is there of one group skips nothing of another', () => {
  const layout = layoutOf(fullAttention(), slidingWindow(8), ssmState());
  const plan = planTransfer(layout, [upTo(16), NOTHING, NOTHING], 16);
  expect(plan.pages).toEqual([
    { group: 1, block: 2, readyAt: 12 },
    { group: 1, block: 3, readyAt: 16 },
    { group: 2, block: 3, readyAt: 16 },
  ]);
  expect(plan.bytes).toBe(2 * 10 + 100);
});

test('pages are ready once their own tokens are computed, a state at the hand-over', () => {
  const plan = planTransfer(layoutOf(fullAttention(), ssmState()), [NOTHING, NOTHING], 10);
  expect(plan.pages.map(({ readyAt }) => readyAt)).toEqual([4, 8, 10, 10]);
});
