import { expect, test } from 'vitest';
import { nextTask } from './next-task.ts';

test('everything that is ready now runs first, also what becomes ready by it', async () => {
  const order: string[] = [];
  const goOn = async () => {
    for (let i = 0; i < 20; i++) await null;
    order.push('twenty turns of a promise');
  };
  const task = nextTask().then(() => order.push('next task'));
  queueMicrotask(() => order.push('a microtask'));
  void goOn();
  await task;
  expect(order).toEqual(['a microtask', 'twenty turns of a promise', 'next task']);
});

test('tasks come in the order in which they were asked for', async () => {
  const order: number[] = [];
  await Promise.all(Array.from({ length: 10 }, (_, i) => nextTask().then(() => order.push(i))));
  expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test('others get their turn in between', async () => {
  let turns = 0;
  const other = setImmediate(function turn() {
    turns++;
    if (turns < 3) setImmediate(turn);
  });
  for (let i = 0; i < 1000 && turns < 3; i++) await nextTask();
  clearImmediate(other);
  expect(turns).toBe(3);
});
