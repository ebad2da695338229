import { expect, test } from 'vitest';
import { hashTokens } from './token-hash.ts';

test('equal tokens have equal hashes, wherever they stand', () => {
  expect(hashTokens(Uint32Array.of(9, 1, 2, 3), 1, 3)).toBe(hashTokens(Uint32Array.of(1, 2, 3, 9), 0, 3));
});

test('tokens that differ in one place, in order or in number mostly have different hashes', () => {
  const pieces = [[1, 2, 3, 4], [1, 2, 3, 5], [2, 1, 3, 4], [1, 2, 3], [0, 1, 2, 3], [0], [0, 0], [0xffffffff], [1]];
  const hashes = pieces.map((piece) => hashTokens(Uint32Array.from(piece), 0, piece.length));
  expect(new Set(hashes).size).toBe(pieces.length);
});

test('a hash is a whole number of 32 bits', () => {
  const hash = hashTokens(Uint32Array.of(0xffffffff, 0xfffffffe), 0, 2);
  expect(hash).toBe(hash | 0);
});
