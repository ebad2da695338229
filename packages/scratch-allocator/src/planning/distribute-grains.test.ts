import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { distributeGrains, type GrainDemand } from './distribute-grains.ts';
import { grainsFor } from './grains.ts';

const MIB = 2 ** 20;

function demand(slotBytes: number, weight: number, minSlots = 1, exactMinimum = false): GrainDemand {
  return { slotSizes: [slotBytes], weight, minSlots, exactMinimum };
}

describe('distributeGrains', () => {
  it('gives halves to the even side', () => {
    expect(distributeGrains(5, [demand(2 * MIB - 1, 0.5, 2), demand(2 * MIB, 0.5, 2)], 2 * MIB)).toEqual([2, 3]);
    expect(distributeGrains(7, [demand(MIB, 1), demand(MIB, 1)], MIB)).toEqual([4, 3]);
  });

  it('hands on the grains that do not make up a slot', () => {
    expect(distributeGrains(10, [demand(4 * MIB, 1), demand(MIB, 1)], MIB)).toEqual([1, 6]);
  });

  it('starts with the smallest weight, whatever the order of the groups', () => {
    expect(distributeGrains(10, [demand(MIB, 3), demand(3 * MIB, 2)], MIB)).toEqual([7, 1]);
    expect(distributeGrains(10, [demand(3 * MIB, 2), demand(MIB, 3)], MIB)).toEqual([1, 7]);
  });

  it('pins a group at its minimum and shares the rest anew', () => {
    expect(distributeGrains(12, [demand(MIB, 1, 6), demand(MIB, 8), demand(MIB, 3)], MIB)).toEqual([6, 4, 2]);
  });

  it('fills the grains of a pinned group with slots, unless the minimum is to be exact', () => {
    const other = demand(MIB, 99);
    expect(distributeGrains(10, [demand(300_000, 1, 4), other], MIB)).toEqual([6, 8]);
    expect(distributeGrains(10, [demand(300_000, 1, 4, true), other], MIB)).toEqual([4, 8]);
  });

  it('an exact minimum does not hold back a group that wishes for more', () => {
    expect(distributeGrains(10, [demand(MIB, 1, 2, true), demand(MIB, 1)], MIB)).toEqual([5, 5]);
  });

  it('never falls below a minimum and never spends more than there is', () => {
    const demands = fc.array(
      fc.record({
        slotSizes: fc.array(fc.integer({ min: 1, max: 3 * MIB }), { minLength: 1, maxLength: 3 }),
        weight: fc.integer({ min: 0, max: 1000 }),
        minSlots: fc.integer({ min: 1, max: 20 }),
        exactMinimum: fc.boolean(),
      }),
      { minLength: 1, maxLength: 8 },
    );
    fc.assert(
      fc.property(demands, fc.integer({ min: 0, max: 500 }), (groups, spare) => {
        fc.pre(groups.some(({ weight }) => weight > 0));
        const least = groups.reduce((sum, { minSlots, slotSizes }) => sum + grainsFor(minSlots, slotSizes, MIB), 0);
        const slots = distributeGrains(least + spare, groups, MIB);
        const spent = groups.reduce((sum, { slotSizes }, group) => sum + grainsFor(slots[group], slotSizes, MIB), 0);
        expect(spent).toBeLessThanOrEqual(least + spare);
        groups.forEach(({ minSlots }, group) => {
          expect(slots[group]).toBeGreaterThanOrEqual(minSlots);
        });
      }),
    );
  });
});
