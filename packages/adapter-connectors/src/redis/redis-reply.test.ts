import { expect, test } from 'vitest';
import { asBytes, asCount, asSet, redisOutcome } from './redis-reply.ts';

const failed = (message: string) => redisOutcome({ status: 'failed', error: new Error(message) }, asCount).outcome;
const came = (value: unknown) => ({ status: 'done', value }) as const;

test.each([
  'OOM command not allowed when used memory > maxmemory.',
  "READONLY You can't write against a read only replica.",
  'LOADING Redis is loading the dataset in memory',
  'CLUSTERDOWN The cluster is down',
  'NOPERM this user has no permissions',
  'ERR unknown command',
])('the server refuses: %s', (message) => {
  expect(failed(message)).toBe('refused');
});

test.each(['Socket closed unexpectedly', 'connect ECONNREFUSED 127.0.0.1:1', 'The client is closed', ''])(
  'the connection is lost: %s',
  (message) => {
    expect(failed(message)).toBe('lost');
  },
);

test('a value of another type is told apart, and so is what never came', () => {
  expect(failed('WRONGTYPE Operation against a key holding the wrong kind of value')).toBe('wrong-type');
  expect(redisOutcome({ status: 'late' }, asCount)).toEqual({ outcome: 'late' });
});

test('answers that a command cannot have are nonsense', () => {
  expect(redisOutcome(came(Buffer.from('x')), asBytes)).toMatchObject({ outcome: 'value' });
  expect(redisOutcome(came(7), asBytes)).toEqual({ outcome: 'nonsense' });
  expect(redisOutcome(came(0), asCount)).toEqual({ outcome: 'value', value: 0 });
  expect(redisOutcome(came(-1), asCount)).toEqual({ outcome: 'nonsense' });
  expect(redisOutcome(came(Buffer.from('1')), asCount)).toEqual({ outcome: 'nonsense' });
  expect(redisOutcome(came('OK'), asSet)).toEqual({ outcome: 'value', value: true });
  expect(redisOutcome(came(null), asSet)).toEqual({ outcome: 'value', value: false });
  expect(redisOutcome(came(1), asSet)).toEqual({ outcome: 'nonsense' });
});
