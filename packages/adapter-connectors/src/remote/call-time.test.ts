import { expect, test } from 'vitest';
import { inTime } from './call-time.ts';

const never = new Promise<number>(() => {});

test('a call ends when its time is over, and what it started is told', async () => {
  const answer = await inTime(5, undefined, async (time) => {
    const settled = await time.settle(never);
    return { ...settled, expired: time.expired, told: time.signal.aborted };
  });
  expect(answer).toEqual({ status: 'late', expired: true, told: true });
});

test('answers and failures that come in time are told apart', async () => {
  const error = new Error('no');
  const both = await inTime(60_000, undefined, (time) =>
    Promise.all([time.settle(Promise.resolve(1)), time.settle(Promise.reject(error))]),
  );
  expect(both).toEqual([
    { status: 'done', value: 1 },
    { status: 'failed', error },
  ]);
});

test('a caller that gives up is answered with its reason at once', async () => {
  const caller = new AbortController();
  const call = inTime(60_000, { signal: caller.signal }, (time) => time.settle(never));
  caller.abort('enough');
  await expect(call).rejects.toBe('enough');
  await expect(inTime(60_000, { signal: caller.signal }, () => never)).rejects.toBe('enough');
});
