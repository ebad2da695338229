import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NONE } from '../columns.ts';
import { PageTable } from '../page/page-table.ts';
import { LruQueue, MAX_PRIORITY } from './lru-queue.ts';

function queueOf(...priorities: number[]) {
  const pages = new PageTable();
  const queue = new LruQueue(pages);
  const ids = priorities.map((priority) => {
    const page = pages.create(0, 0, priority);
    queue.push(page);
    return page;
  });
  return { pages, queue, ids };
}

describe('the first to leave', () => {
  test('is none of an empty queue', () => {
    expect(queueOf().queue.first()).toBe(NONE);
  });

  test('is the one that came first, among equals', () => {
    const { queue, ids } = queueOf(35, 35, 35);
    expect([...queue]).toEqual(ids);
    expect(queue.first()).toBe(ids[0]);
  });

  test('is one of the lowest priority, however late it came', () => {
    const { queue, ids } = queueOf(MAX_PRIORITY, 35, 0, 35, 0);
    expect([...queue]).toEqual([ids[2], ids[4], ids[1], ids[3], ids[0]]);
  });

  test('is found again after lower priorities ran out and came back', () => {
    const { pages, queue, ids } = queueOf(50, 10);
    queue.remove(ids[1]);
    expect(queue.first()).toBe(ids[0]);
    const low = pages.create(0, 0, 3);
    queue.push(low);
    expect([queue.first(), queue.count]).toEqual([low, 2]);
  });

  test('is the next after one was taken from the front, the middle or the end', () => {
    for (const position of [0, 1, 2]) {
      const { queue, ids } = queueOf(35, 35, 35);
      queue.remove(ids[position]);
      expect([...queue]).toEqual(ids.filter((_, i) => i !== position));
    }
  });
});

test('random arrivals and departures leave in the order of priority, then of arrival', () => {
  const anyStep = fc.record({ priority: fc.integer({ min: 0, max: MAX_PRIORITY }), leave: fc.boolean(), choice: fc.nat() });
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 200 }), (steps) => {
      const { pages, queue } = queueOf();
      const waiting: { page: number; priority: number; arrival: number }[] = [];
      steps.forEach(({ priority, leave, choice }, arrival) => {
        if (leave && waiting.length > 0) {
          const [gone] = waiting.splice(choice % waiting.length, 1);
          queue.remove(gone.page);
          pages.destroy(gone.page);
        } else {
          const page = pages.create(0, 0, priority);
          queue.push(page);
          waiting.push({ page, priority, arrival });
        }
        const expected = [...waiting].sort((a, b) => a.priority - b.priority || a.arrival - b.arrival).map(({ page }) => page);
        expect([queue.first(), queue.count]).toEqual([expected[0] ?? NONE, expected.length]);
        expect([...queue]).toEqual(expected);
      });
    }),
    { numRuns: 50 },
  );
});
