import { describe, expect, test } from 'vitest';
import { ReplayRing } from './replay-ring.ts';

function ringOf(capacity: number, sequences: readonly number[]): ReplayRing {
  const ring = new ReplayRing(capacity);
  for (const sequence of sequences) ring.add({ sequence, payload: Uint8Array.of(sequence) });
  return ring;
}

const numbers = (ring: ReplayRing, from: bigint) => ring.from(from).map(({ sequence }) => sequence);

describe('a ring', () => {
  test('gives what it has from a number on, oldest first', () => {
    const ring = ringOf(4, [0, 1, 2]);
    expect([numbers(ring, 0n), numbers(ring, 1n), numbers(ring, 3n)]).toEqual([[0, 1, 2], [1, 2], []]);
  });

  test('keeps the latest once it is full', () => {
    expect(numbers(ringOf(3, [0, 1, 2, 3, 4]), 0n)).toEqual([2, 3, 4]);
    expect(numbers(ringOf(3, [0, 1, 2]), 0n)).toEqual([0, 1, 2]);
    expect(numbers(ringOf(1, [0, 1]), 0n)).toEqual([1]);
  });

  test('has no batch where a number was lost', () => {
    expect(numbers(ringOf(3, [0, 1, 5, 6]), 2n)).toEqual([5, 6]);
  });

  test('knows numbers of 64 bits', () => {
    expect(numbers(ringOf(3, [0, 1]), 2n ** 64n - 1n)).toEqual([]);
  });
});
