import { expect, test } from 'vitest';
import { emptyColumns, type MemoryFrame } from '../protocol/memory-frame.ts';
import { COLOUR_MODES, type ColourMode } from '../state/colour-mode.ts';
import {
  type Colouring,
  colourOfCode,
  isFreshCode,
  NEUTRAL,
  POLICY_COLOURS,
  SHARED,
  stateOfCode,
  writeCodes,
} from './cell-codes.ts';

/** A free slot, a locked page of conversation 1, one of 1 and 2, and one that nobody holds; of groups 2, 2 and 3. */
function frame(): MemoryFrame {
  const { buffer: _, ...columns } = emptyColumns(4);
  columns.state.set([0, 1, 1, 3]);
  columns.group.set([-1, 2, 2, 3]);
  columns.owner.set([-1, 1, 1, -1]);
  columns.owners.set([0, 0b10, 0b110, 0]);
  const pool = {
    tier: 0,
    medium: 'device' as const,
    groupIds: [2, 3],
    slotBytes: 1,
    firstSlot: 0,
    numSlots: 4,
    numFree: 1,
    mostInUse: null,
  };
  return { sequence: 0, pools: [pool], numSlots: 4, omitted: 0, ...columns };
}

const policies = ['required', 'required', 'private', 'optional'] as const;
const codes = (mode: ColourMode, more: Partial<Colouring> = {}) => {
  const out = new Uint8Array(4);
  const shown = frame();
  writeCodes(shown, shown.pools[0], { mode, policies, freshUntil: null, now: 0, ...more }, out);
  return [...out];
};

test.each(COLOUR_MODES)('every cell shows the state of its slot, coloured by %s', (mode) => {
  expect(codes(mode).map(stateOfCode)).toEqual([0, 1, 1, 3]);
  expect(codes(mode).some(isFreshCode)).toBe(false);
});

test.each<[ColourMode, number[]]>([
  ['group', [NEUTRAL, 2, 2, 3]],
  ['policy', [NEUTRAL, POLICY_COLOURS.private, POLICY_COLOURS.private, POLICY_COLOURS.optional]],
  ['conversation', [NEUTRAL, 5, SHARED, NEUTRAL]],
  ['status', [NEUTRAL, 4, 4, NEUTRAL]],
])('colours by %s', (mode, expected) => {
  expect(codes(mode).map(colourOfCode)).toEqual(expected);
});

test('a page is fresh until its time is over', () => {
  const freshUntil = Float64Array.of(0, 10, 11, 0);
  expect(codes('group', { freshUntil, now: 10 }).map(isFreshCode)).toEqual([false, false, true, false]);
});
