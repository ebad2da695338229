import { grainsFor } from '@bufferwise/scratch-allocator';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NUM_STEPS } from './need-gauge.ts';
import { type GroupNeeds, type MoveRules, planMove } from './plan-move.ts';

const GRAIN = 1024;
const RULES: MoveRules = { grains: 64, granularity: GRAIN, stepGrains: 2, leastGain: 10, ratio: 1.25, doubt: 0 };
const NOTHING = new Array<number>(NUM_STEPS).fill(0);

/** A group of 32 grains and one slot a grain, which nobody misses. */
const group = (needs: Partial<GroupNeeds> = {}): GroupNeeds => ({
  slotSizes: [GRAIN],
  slots: 32,
  floor: 1,
  peakUse: 0,
  short: 0,
  idle: 0,
  evicted: 100,
  gone: 100,
  returned: 100,
  gains: NOTHING,
  variances: NOTHING,
  ...needs,
});
const gains = (gain: number) => NOTHING.map(() => gain);

describe('memory moves', () => {
  test('to whom it would have saved more, from whom it costs less', () => {
    const move = planMove([group({ gains: gains(100) }), group({ gains: gains(10) })], RULES);
    expect(move).toMatchObject({ from: 1, to: 0, reason: 'misses' });
    expect(move?.slots).toEqual([40, 24]);
  });

  test('not for what is hardly more, nor for what is hardly anything, nor for what may be chance', () => {
    expect(planMove([group({ gains: gains(12) }), group({ gains: gains(10) })], RULES)).toBeNull();
    expect(planMove([group({ gains: gains(1) }), group()], { ...RULES, leastGain: 100 })).toBeNull();
    expect(planMove([group({ gains: gains(100), variances: gains(1e6) }), group()], RULES)).toBeNull();
    expect(planMove([group({ gains: gains(100), returned: 7 }), group()], RULES)).toBeNull();
  });

  test('no more of it than has left the giver, of whom nothing would be known', () => {
    expect(planMove([group({ gains: gains(100) }), group({ gone: 1 })], RULES)).toBeNull();
    expect(planMove([group({ gains: gains(100) }), group({ gone: 5 })], RULES)?.slots).toEqual([36, 28]);
  });

  test('at once where it lies idle and somebody misses what was evicted, unless there is doubt', () => {
    const needs = [group({ returned: 1 }), group({ idle: 10, gone: 0 })];
    expect(planMove(needs, RULES)).toMatchObject({ reason: 'idle', grains: 10, slots: [42, 22] });
    expect(planMove(needs, { ...RULES, doubt: 1 })).toBeNull();
  });

  test('first to whom requests found no room in, from where they leave enough', () => {
    const needs = [group({ short: 3 }), group({ gains: gains(50), idle: 30 }), group({ gains: gains(100) })];
    const rules = { ...RULES, grains: 96 };
    expect(planMove(needs, rules)).toMatchObject({ from: 1, to: 0, reason: 'requests', slots: [36, 28, 32] });
    expect(planMove([group({ short: 3 }), group({ peakUse: 25 })], RULES)).toBeNull();
    expect(planMove([group({ short: 3 }), group({ floor: 31 })], RULES)).toBeNull();
    expect(planMove([group({ short: 3 }), group({ short: 1 })], RULES)).toBeNull();
    expect(planMove([group({ short: 30 }), group()], RULES)?.slots).toEqual([48, 16]);
    expect(planMove([group({ short: 32 }), group()], RULES)).toBeNull();
    expect(planMove([group({ short: 3 }), group({ peakUse: 15 })], RULES)).toBeNull();
    expect(planMove([group({ short: 3 }), group({ peakUse: 14 })], RULES)?.slots).toEqual([36, 28]);
  });
});

// ── Laws ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

const amount = fc.integer({ min: 0, max: 1000 });
const anyGroup = fc
  .record({
    slotSizes: fc.array(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 3 }),
    slots: fc.integer({ min: 1, max: 400 }),
    floor: fc.double({ min: 0, max: 1, noNaN: true }),
    peakUse: fc.double({ min: 0, max: 1, noNaN: true }),
    short: fc.constantFrom(0, 0, 0, 1, 30),
    idle: fc.double({ min: 0, max: 1, noNaN: true }),
    evicted: amount,
    gone: amount,
    returned: fc.integer({ min: 0, max: 50 }),
    gains: fc.array(amount, { minLength: NUM_STEPS, maxLength: NUM_STEPS }),
    variances: fc.array(amount, { minLength: NUM_STEPS, maxLength: NUM_STEPS }),
  })
  .map(
    ({ floor, peakUse, idle, ...rest }): GroupNeeds => ({
      ...rest,
      floor: Math.max(1, Math.floor(floor * rest.slots)),
      peakUse: Math.floor(peakUse * rest.slots),
      idle: Math.floor(idle * (1 - peakUse) * rest.slots),
    }),
  );

test('a move keeps the bytes of the tier, floors, room for requests, and whoever neither gives nor takes', () => {
  fc.assert(
    fc.property(
      fc.array(anyGroup, { minLength: 1, maxLength: 4 }),
      fc.nat(5),
      fc.integer({ min: 1, max: 9 }),
      (needs, unused, step) => {
        const used = (slots: readonly number[]) =>
          slots.reduce((sum, n, index) => sum + grainsFor(n, needs[index].slotSizes, GRAIN), 0);
        const grains = used(needs.map(({ slots }) => slots)) + unused;
        const move = planMove(needs, { ...RULES, grains, stepGrains: step });
        if (move === null) return;
        const { from, to, slots } = move;
        expect(used(slots)).toBeLessThanOrEqual(grains);
        expect(slots[to]).toBeGreaterThan(needs[to].slots);
        expect(slots[from]).toBeLessThan(needs[from].slots);
        expect(slots[from]).toBeGreaterThanOrEqual(Math.max(needs[from].floor, 1.25 * needs[from].peakUse));
        needs.forEach((each, index) => {
          if (index !== from && index !== to) expect(slots[index]).toBe(each.slots);
        });
      },
    ),
    { numRuns: 500 },
  );
});

/** What pools would see of a load whose hits grow with each group's slots as `worth × log(slots)`. */
function seenUnder(worths: readonly number[], slots: readonly number[], stepSlots: number): GroupNeeds[] {
  return worths.map((worth, index) => {
    const gainOf = (step: number) =>
      worth * Math.log((slots[index] + (step + 1) * stepSlots) / (slots[index] + step * stepSlots));
    const each = NOTHING.map((_, step) => gainOf(step));
    return group({ slots: slots[index], gains: each, variances: each });
  });
}

test('under a constant load memory settles, near where one more byte is worth the same everywhere', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 2, maxLength: 4 }),
      fc.array(fc.integer({ min: 20, max: 60 }), { minLength: 4, maxLength: 4 }),
      (worths, start) => {
        const rules = { ...RULES, leastGain: 1, stepGrains: 1, grains: 0 };
        let slots = start.slice(0, worths.length);
        rules.grains = slots.reduce((sum, n) => sum + n, 0);
        const seen = new Set<string>();
        for (;;) {
          // No split comes back: every move leaves what it came from for good.
          expect(seen.has(slots.join())).toBe(false);
          seen.add(slots.join());
          const move = planMove(
            seenUnder(
              worths.map((worth) => worth * 1000),
              slots,
              1,
            ),
            rules,
          );
          if (move === null) break;
          slots = [...move.slots];
        }
        const densities = worths.map((worth, index) => worth / slots[index]);
        expect(Math.max(...densities) / Math.min(...densities)).toBeLessThan(2.5);
      },
    ),
    { numRuns: 200 },
  );
});
