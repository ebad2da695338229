import fc from 'fast-check';
import { expect, it } from 'vitest';
import { grainsFor, maxSlotsIn } from './grains.ts';

it('rounds every pool up by itself', () => {
  expect(grainsFor(3, [1000, 100], 4096)).toBe(2);
  expect(grainsFor(5, [1000, 100], 4096)).toBe(3);
  expect(grainsFor(0, [1000, 100], 4096)).toBe(0);
});

it('finds the most slots that fit: one more never does', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 100_000 }), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 5000 }), sizes, fc.constantFrom(4096, 2 ** 21), (grains, slotSizes, granularity) => {
      const slots = maxSlotsIn(grains, slotSizes, granularity);
      expect(grainsFor(slots, slotSizes, granularity)).toBeLessThanOrEqual(grains);
      expect(grainsFor(slots + 1, slotSizes, granularity)).toBeGreaterThan(grains);
    }),
  );
});
