import { expect, test } from 'vitest';
import { GhostTable } from './ghost-table.ts';

test('what is put in is taken out once, with the tag it had last', () => {
  const table = new GhostTable(64);
  expect([table.put(7, 1), table.put(7, 2), table.put(-9, 3)]).toEqual([true, false, true]);
  expect([table.take(7), table.take(7), table.take(-9), table.take(5)]).toEqual([2, -1, 3, -1]);
});

test('the table never grows: however much is put in, at most its size is known, and the latest is', () => {
  const table = new GhostTable(64);
  const hashes = Array.from({ length: 10_000 }, (_, i) => Math.imul(i + 1, 0x9e3779b1));
  for (const hash of hashes) table.put(hash, 0);
  expect(table.size).toBe(64);
  expect(table.take(hashes[hashes.length - 1])).toBe(0);
  expect(hashes.filter((hash) => table.take(hash) !== -1).length).toBeLessThanOrEqual(63);
});

test('of the entries that could go the oldest does', () => {
  const table = new GhostTable(4);
  for (const hash of [1, 2, 3, 4]) table.put(hash, hash);
  table.put(1, 10);
  table.put(5, 5);
  expect([1, 2, 3, 4, 5].map((hash) => table.take(hash))).toEqual([10, -1, 3, 4, 5]);
});
