import { expect, test } from 'vitest';
import { endpointOfRank, isBound } from './endpoint.ts';

test.each([
  ['tcp://*:5557', 0, 'tcp://*:5557'],
  ['tcp://*:5557', 3, 'tcp://*:5560'],
  ['tcp://127.0.0.1:*', 3, 'tcp://127.0.0.1:*'],
  ['inproc://kv', 0, 'inproc://kv'],
  ['inproc://kv', 2, 'inproc://kv_dp2'],
])('%s of rank %d is %s', (endpoint, rank, expected) => {
  expect(endpointOfRank(endpoint, rank)).toBe(expected);
});

test.each([
  ['tcp://*:5557', true],
  ['tcp://[::]:5557', true],
  ['tcp://127.0.0.1:*', true],
  ['ipc:///tmp/kv', true],
  ['inproc://kv', true],
  ['tcp://router:5557', false],
])('%s is bound: %s', (endpoint, bound) => {
  expect(isBound(endpoint)).toBe(bound);
});
