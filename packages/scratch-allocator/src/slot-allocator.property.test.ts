import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SlotAllocator } from './slot-allocator.ts';

type Operation = { kind: 'allocate'; n: number } | { kind: 'release'; pick: number } | { kind: 'resize'; slots: number };

const operations = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('allocate' as const), n: fc.integer({ min: 0, max: 90 }) }) },
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('release' as const), pick: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('resize' as const), slots: fc.integer({ min: 0, max: 1200 }) }) },
  ),
  { maxLength: 80 },
);

/** The slow, obvious version: a set of the used ids. */
function run(allocator: SlotAllocator, used: Set<number>, slots: number, operation: Operation): number {
  if (operation.kind === 'allocate') {
    const expected: number[] = [];
    for (let slot = 0; slot < slots && expected.length < operation.n; slot++) if (!used.has(slot)) expected.push(slot);
    const out = new Int32Array(operation.n);
    const fits = expected.length === operation.n;
    expect(allocator.allocate(operation.n, out)).toBe(fits);
    if (fits) {
      expect([...out]).toEqual(expected);
      for (const slot of expected) used.add(slot);
    }
    return slots;
  }
  if (operation.kind === 'release') {
    if (used.size === 0) return slots;
    const slot = [...used][operation.pick % used.size];
    allocator.release(slot);
    used.delete(slot);
    expect(() => allocator.release(slot)).toThrow();
    return slots;
  }
  const beyond = [...used].filter((slot) => slot >= operation.slots).length;
  expect(allocator.numAllocatedFrom(operation.slots)).toBe(beyond);
  expect(allocator.resize(operation.slots)).toBe(beyond === 0);
  return beyond === 0 ? operation.slots : slots;
}

it('agrees with a set of used slots after any operations, and every slot comes back', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1200 }), operations, (initial, steps) => {
      const allocator = new SlotAllocator(initial);
      const used = new Set<number>();
      let slots = initial;
      for (const step of steps) {
        slots = run(allocator, used, slots, step);
        expect([allocator.slots, allocator.free]).toEqual([slots, slots - used.size]);
      }
      for (let slot = -1; slot <= slots; slot++) expect(allocator.isAllocated(slot)).toBe(used.has(slot));
      for (const slot of used) allocator.release(slot);
      expect(allocator.free).toBe(slots);
      expect(allocator.allocate(slots, new Int32Array(slots))).toBe(true);
    }),
  );
});
