import { expect, test, vi } from 'vitest';
import { Gate } from './gate.ts';

const { signal } = new AbortController();

test('an open gate lets everybody through', async () => {
  expect(await new Gate().through(async () => 'through', signal)).toBe('through');
});

test('while stepping, each step lets everybody who waits take one turn', async () => {
  const gate = new Gate();
  gate.setStepping(true);
  const turns: string[] = [];
  const walk = async (name: string) => {
    for (let turn = 0; turn < 2; turn++) await gate.through(async () => turns.push(name), signal);
  };
  const walks = [walk('a'), walk('b')];
  await Promise.resolve();
  expect(turns).toEqual([]);
  gate.step();
  await vi.waitUntil(() => turns.length === 2, 30_000);
  expect(turns).toEqual(['a', 'b']);
  gate.setStepping(false);
  await Promise.all(walks);
  expect(turns).toEqual(['a', 'b', 'a', 'b']);
});

test('whoever gives up does not wait for a step', async () => {
  const gate = new Gate();
  gate.setStepping(true);
  const controller = new AbortController();
  const seen = gate.through(async () => controller.signal.aborted, controller.signal);
  controller.abort();
  expect(await seen).toBe(true);
  expect(await gate.through(async () => 'at once', controller.signal)).toBe('at once');
});

test('work that has to be alone waits until nobody is inside, and nobody comes in before it is done', async () => {
  const gate = new Gate();
  const order: string[] = [];
  let leave = () => {};
  const inside = gate.through(async () => {
    await new Promise<void>((resolve) => {
      leave = resolve;
    });
    order.push('left');
  }, signal);
  const alone = gate.alone(async () => order.push('alone'));
  const second = gate.alone(async () => order.push('alone again'));
  const late = gate.through(async () => order.push('late'), signal);
  expect(order).toEqual([]);
  leave();
  await Promise.all([inside, alone, second, late]);
  expect(order[0]).toBe('left');
  expect(order.indexOf('alone')).toBeLessThan(order.indexOf('late'));
});

test('work that fails alone opens the gate again', async () => {
  const gate = new Gate();
  await expect(gate.alone(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await gate.through(async () => 'through', signal)).toBe('through');
});
