import { StateError } from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { SlotAllocator } from './slot-allocator.ts';

function take(allocator: SlotAllocator, n: number): number[] {
  const out = new Int32Array(n);
  expect(allocator.allocate(n, out)).toBe(true);
  return [...out];
}

function codeOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(StateError);
    return (error as StateError).code;
  }
  return 'nothing thrown';
}

describe('SlotAllocator', () => {
  it.each([0, 1, 31, 32, 33, 1023, 1024, 1025, 40_000])('hands out each of %i slots once, lowest first', (slots) => {
    const allocator = new SlotAllocator(slots);
    expect(allocator.free).toBe(slots);
    expect(take(allocator, slots)).toEqual(Array.from({ length: slots }, (_, slot) => slot));
    expect(allocator.free).toBe(0);
    expect(allocator.allocate(1, new Int32Array(1))).toBe(false);
  });

  it('takes nothing and writes nothing when it cannot give all', () => {
    const allocator = new SlotAllocator(40);
    take(allocator, 38);
    const out = new Int32Array(3).fill(-7);
    expect(allocator.allocate(3, out)).toBe(false);
    expect([...out]).toEqual([-7, -7, -7]);
    expect(allocator.free).toBe(2);
    expect(take(allocator, 2)).toEqual([38, 39]);
  });

  it('gives the lowest slots that came back, before higher ones', () => {
    const allocator = new SlotAllocator(2000);
    take(allocator, 1500);
    for (const slot of [1400, 3, 64, 63, 1031]) allocator.release(slot);
    expect(allocator.free).toBe(505);
    expect(take(allocator, 7)).toEqual([3, 63, 64, 1031, 1400, 1500, 1501]);
  });

  it('writes into the middle of what the caller keeps', () => {
    const allocator = new SlotAllocator(8);
    const out = new Int32Array(4).fill(-1);
    expect(allocator.allocate(2, out, 1)).toBe(true);
    expect([...out]).toEqual([-1, 0, 1, -1]);
    expect(allocator.allocate(0, out)).toBe(true);
    expect(allocator.free).toBe(6);
  });

  it('refuses to take a slot back twice, or one it never had', () => {
    const allocator = new SlotAllocator(4);
    take(allocator, 2);
    allocator.release(1);
    expect(codeOf(() => allocator.release(1))).toBe('slot-not-allocated');
    expect(codeOf(() => allocator.release(3))).toBe('slot-not-allocated');
    for (const slot of [-1, 4, 0.5, Number.NaN]) expect(codeOf(() => allocator.release(slot))).toBe('unknown-slot');
    expect(allocator.free).toBe(3);
    allocator.release(0);
    expect(allocator.free).toBe(4);
  });

  it('refuses numbers that count nothing, and an `out` that is too short', () => {
    for (const slots of [-1, 1.5, Number.NaN, 2 ** 31]) expect(codeOf(() => new SlotAllocator(slots))).toBe('invalid-slot-count');
    const allocator = new SlotAllocator(4);
    for (const n of [-1, 0.5, Number.NaN])
      expect(codeOf(() => allocator.allocate(n, new Int32Array(4)))).toBe('invalid-slot-count');
    expect(codeOf(() => allocator.allocate(2, new Int32Array(1)))).toBe('out-too-small');
    expect(codeOf(() => allocator.allocate(2, new Int32Array(2), 1))).toBe('out-too-small');
    expect(codeOf(() => allocator.allocate(2, new Int32Array(4), -1))).toBe('out-too-small');
    expect(codeOf(() => allocator.resize(-1))).toBe('invalid-slot-count');
    expect(allocator.free).toBe(4);
  });

  it('tells which slots are out', () => {
    const allocator = new SlotAllocator(70);
    take(allocator, 66);
    allocator.release(64);
    expect([63, 64, 65, 66, 70, -1, 0.5].map((slot) => allocator.isAllocated(slot))).toEqual([
      true,
      false,
      true,
      false,
      false,
      false,
      false,
    ]);
    expect([0, 63, 64, 65, 66, 70, 99].map((from) => allocator.numAllocatedFrom(from))).toEqual([65, 2, 1, 1, 0, 0, 0]);
  });

  it('shrinks at once to a size that no used slot is beyond', () => {
    const allocator = new SlotAllocator(184_064);
    take(allocator, 2048);
    expect(allocator.resize(122_624)).toBe(true);
    expect([allocator.slots, allocator.free]).toEqual([122_624, 120_576]);
    expect(allocator.resize(2048)).toBe(true);
    expect(allocator.free).toBe(0);
    expect(allocator.resize(2047)).toBe(false);
    expect([allocator.slots, allocator.free]).toEqual([2048, 0]);
  });

  it('shrinks once the high slots have come back', () => {
    const allocator = new SlotAllocator(16);
    take(allocator, 16);
    expect(allocator.resize(8)).toBe(false);
    for (let slot = 8; slot < 16; slot++) allocator.release(slot);
    expect(allocator.resize(8)).toBe(true);
    expect([allocator.slots, allocator.free]).toEqual([8, 0]);
    expect(allocator.isAllocated(8)).toBe(false);
  });

  it('grows by free slots and keeps the used ones', () => {
    const allocator = new SlotAllocator(30);
    take(allocator, 30);
    allocator.release(7);
    expect(allocator.resize(1100)).toBe(true);
    expect(allocator.free).toBe(1071);
    expect(take(allocator, 1071)).toEqual([7, ...Array.from({ length: 1070 }, (_, i) => 30 + i)]);
  });

  it('does not bring slots back to life that a shrink has cut off', () => {
    const allocator = new SlotAllocator(40);
    expect(allocator.resize(5)).toBe(true);
    expect(allocator.resize(6)).toBe(true);
    expect(take(allocator, 6)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(allocator.free).toBe(0);
    expect(allocator.allocate(1, new Int32Array(1))).toBe(false);
  });
});
