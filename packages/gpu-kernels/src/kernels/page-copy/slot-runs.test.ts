import fc from 'fast-check';
import { expect, test } from 'vitest';
import { forEachSlotRun } from './slot-runs.ts';

function runsOf(...slots: number[]): [number, number, number][] {
  const runs: [number, number, number][] = [];
  forEachSlotRun(Int32Array.from(slots), (...run) => runs.push(run));
  return runs;
}

test('neighbours are one run, in their order', () => {
  expect(runsOf()).toEqual([]);
  expect(runsOf(4, 5, 6, 9)).toEqual([
    [4, 3, 0],
    [9, 1, 3],
  ]);
  expect(runsOf(3, 2, 1)).toHaveLength(3);
});

test('runs put together are the slots again', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 6 }), { maxLength: 20 }), (slots) => {
      const rebuilt = runsOf(...slots).flatMap(([first, num]) => Array.from({ length: num }, (_, i) => first + i));
      expect(rebuilt).toEqual(slots);
    }),
  );
});
