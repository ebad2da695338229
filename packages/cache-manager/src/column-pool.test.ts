import { expect, test } from 'vitest';
import { ColumnPool } from './column-pool.ts';

test('a column that was given back serves again, wherever it is long enough', () => {
  const pool = new ColumnPool();
  const column = pool.take(1000) as Uint32Array;
  expect(column.length).toBe(1024);
  pool.give(column);
  expect(pool.take(2000)).not.toBe(column);
  expect(pool.take(513)).toBe(column);
  expect(pool.take(513)).not.toBe(column);
});

test.each([
  [255, 256],
  [256, 256],
  [257, 512],
])('for %i entries there is a column of %i', (entries, length) => {
  expect(new ColumnPool().take(entries)?.length).toBe(length);
});

test('columns that are short, or are not its own, are left to the collector', () => {
  const pool = new ColumnPool();
  expect([pool.take(1), pool.take(128)]).toEqual([undefined, undefined]);
  const foreign = new Uint32Array(1000);
  pool.give(foreign);
  pool.give(new Uint32Array(0));
  expect(pool.take(1000)).not.toBe(foreign);
});

test('no more wait than are worth their memory', () => {
  const pool = new ColumnPool();
  const columns = Array.from({ length: 3 }, () => pool.take(1 << 20) as Uint32Array);
  for (const column of columns) pool.give(column);
  expect(Array.from({ length: 3 }, () => columns.includes(pool.take(1 << 20) as Uint32Array))).toEqual([true, true, false]);
});
