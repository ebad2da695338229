import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Expiries } from './expiries.ts';

test('what is due comes in the order of its time, then of its coming; the rest waits', () => {
  const due = new Expiries(() => true);
  due.add(1, 30);
  due.add(2, 10);
  due.add(3, 20);
  due.add(4, 10);
  expect(due.next).toBe(10);
  expect([due.take(20), due.take(20), due.take(20), due.take(20)]).toEqual([2, 4, 3, -1]);
  expect([due.next, due.take(29), due.take(30), due.next]).toEqual([30, -1, 1, Number.POSITIVE_INFINITY]);
});

test('what was forgotten is passed over', () => {
  const alive = new Set([1, 3]);
  const due = new Expiries((item) => alive.has(item));
  for (const item of [1, 2, 3]) due.add(item, item);
  expect([due.take(9), due.take(9), due.take(9)]).toEqual([1, 3, -1]);
});

test('what was forgotten takes no room for long', () => {
  const times = new Map<number, number>();
  const due = new Expiries((item, time) => times.get(item) === time);
  for (let time = 1; time <= 10_000; time++) {
    const item = time % 10;
    times.set(item, time);
    due.add(item, time);
  }
  expect(due.size).toBeLessThanOrEqual(64);
  expect(Array.from({ length: 11 }, () => due.take(10_000))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 0, -1]);
});

test('random times come out as sorting them says', () => {
  const anyStep = fc.record({ time: fc.nat(50), take: fc.boolean() });
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 200 }), (steps) => {
      const due = new Expiries(() => true);
      const waiting: { item: number; time: number }[] = [];
      steps.forEach(({ time, take }, item) => {
        if (!take) {
          due.add(item, time);
          waiting.push({ item, time });
          return;
        }
        waiting.sort((a, b) => a.time - b.time || a.item - b.item);
        const expected = waiting.length > 0 && waiting[0].time <= time ? (waiting.shift()?.item ?? -1) : -1;
        expect(due.take(time)).toBe(expected);
        expect(due.size).toBe(waiting.length);
      });
    }),
  );
});
