import { expect, test } from 'vitest';
import { HostMemory } from './host-memory.ts';

const page = (slotBytes: number, value: number) => new Uint8Array(slotBytes).fill(value);

test('memory is had when slots come into use, in pieces', () => {
  const memory = new HostMemory([1 << 20, 8]);
  expect(memory.allocatedBytes).toBe(0);
  expect(memory.reserve(0, 1)).toBe(true);
  expect(memory.allocatedBytes).toBe(4 << 20);
  expect(memory.reserve(0, 4)).toBe(true);
  expect(memory.allocatedBytes).toBe(4 << 20);
  expect(memory.reserve(0, 5)).toBe(true);
  expect(memory.allocatedBytes).toBe(8 << 20);
});

test('a slot holds what was written last, and its neighbours what they held', async () => {
  const memory = new HostMemory([3 << 20, 8]);
  memory.reserve(0, 3);
  for (const slot of [0, 1, 2]) expect(memory.write(0, slot, page(3 << 20, slot))).toBeNull();
  memory.write(0, 1, page(3 << 20, 9));
  expect([0, 1, 2].map((slot) => memory.view(0, slot).at(-1))).toEqual([0, 9, 2]);
  expect((await memory.read(0, 2))[0]).toBe(2);
});

test('a page that is carried to another slot is there, also in another piece', () => {
  const memory = new HostMemory([3 << 20]);
  memory.reserve(0, 2);
  memory.write(0, 1, page(3 << 20, 5));
  memory.move(0, 1, 0);
  expect(memory.view(0, 0)[77]).toBe(5);
});

test('pieces without slots go', async () => {
  const memory = new HostMemory([1 << 20]);
  memory.reserve(0, 12);
  memory.trim(0, 5);
  expect(memory.allocatedBytes).toBe(8 << 20);
  await memory.settled();
  await memory.close();
  expect(memory.allocatedBytes).toBe(0);
});

test('memory that the process cannot have is refused, and nothing else is', () => {
  const memory = new HostMemory([2 ** 52]);
  expect(memory.reserve(0, 1)).toBe(false);
  expect(memory.allocatedBytes).toBe(0);
});
