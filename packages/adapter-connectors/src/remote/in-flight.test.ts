import { expect, test } from 'vitest';
import { InFlight } from './in-flight.ts';

const never = new AbortController().signal;

test('no more requests and bytes are under way than allowed, and who came first goes first', async () => {
  const flight = new InFlight({ maxRequests: 2, maxBytes: 100 });
  const entered: string[] = [];
  const enter = (name: string, bytes: number) => flight.enter(bytes, never).then(() => entered.push(name));
  await Promise.all([enter('a', 60), enter('b', 40)]);
  const rest = [enter('c', 60), enter('d', 1)];
  await Promise.resolve();
  flight.leave(40);
  await new Promise(setImmediate);
  expect(entered).toEqual(['a', 'b']);
  flight.leave(60);
  await Promise.all(rest);
  expect(entered).toEqual(['a', 'b', 'c', 'd']);
  expect(flight.load).toEqual({ requests: 2, bytes: 61 });
});

test('a page larger than all that may be under way goes alone', async () => {
  const flight = new InFlight({ maxRequests: 2, maxBytes: 100 });
  expect(await flight.enter(1000, never)).toBe(true);
  const second = flight.enter(1, never);
  flight.leave(1000);
  expect(await second).toBe(true);
});

test('who gives up makes room for those behind', async () => {
  const flight = new InFlight({ maxRequests: 9, maxBytes: 100 });
  const patience = new AbortController();
  await flight.enter(50, never);
  const large = flight.enter(100, patience.signal);
  const small = flight.enter(50, never);
  patience.abort();
  expect([await large, await small]).toEqual([false, true]);
  expect(await flight.enter(1, patience.signal)).toBe(false);
  expect(flight.load).toEqual({ requests: 2, bytes: 100 });
});
