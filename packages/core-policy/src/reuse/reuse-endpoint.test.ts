import { expect, test } from 'vitest';
import { fullAttention, type Lifecycle, slidingWindow, ssmState } from '../lifecycle/lifecycle.ts';
import { reuseEndpoint } from './reuse-endpoint.ts';

test.each<[string, Lifecycle, number[]]>([
  ['required attention ends anywhere', fullAttention(), [0, 3, 4, 5, 7, 8, 9]],
  ['private attention ends anywhere', slidingWindow(4, { policy: 'private' }), [0, 3, 4, 5, 7, 8, 9]],
  ['optional recurrent state ends anywhere', ssmState('optional'), [0, 3, 4, 5, 7, 8, 9]],
  ['optional full attention ends with a block', fullAttention({ policy: 'optional' }), [0, 0, 4, 4, 4, 8, 8]],
  ['optional windowed attention ends with a block', slidingWindow(4, { policy: 'optional' }), [0, 0, 4, 4, 4, 8, 8]],
])('reuse of %s', (_, lifecycle, expected) => {
  expect([0, 3, 4, 5, 7, 8, 9].map((numTokens) => reuseEndpoint(lifecycle, numTokens, 4))).toEqual(expected);
});
