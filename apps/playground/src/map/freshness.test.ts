import { expect, test } from 'vitest';
import type { MemoryFrame } from '../protocol/memory-frame.ts';
import { Freshness } from './freshness.ts';

const frameOf = (...pages: number[]) => ({ page: Int32Array.from(pages), numSlots: pages.length }) as MemoryFrame;

test('a slot with another page is fresh for a while, one that became free or stayed is not', () => {
  const freshness = new Freshness();
  freshness.take(frameOf(1, 2, 3), 0);
  expect(freshness.isAny(0)).toBe(false);
  freshness.take(frameOf(1, 7, -1), 100);
  const until = [...freshness.until];
  expect(until.map((time) => time > 100)).toEqual([false, true, false]);
  expect(freshness.isAny(100)).toBe(true);
  expect(freshness.isAny(until[1])).toBe(false);
});

test('memory of another shape begins anew', () => {
  const freshness = new Freshness();
  freshness.take(frameOf(1, 2), 0);
  freshness.take(frameOf(3, 4, 5), 10);
  expect(freshness.isAny(10)).toBe(false);
});
