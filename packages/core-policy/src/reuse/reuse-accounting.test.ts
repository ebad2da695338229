import { expect, test } from 'vitest';
import { reuseOutcome } from './reuse-accounting.ts';

test.each([
  ['required', true, false, 'hit'],
  ['required', false, false, 'miss'],
  ['optional', true, true, 'hit'],
  ['optional', false, true, 'miss'],
  ['optional', true, false, 'neither'],
  ['optional', false, false, 'neither'],
  ['private', true, true, 'neither'],
  ['private', false, false, 'neither'],
] as const)('a %s page, found %s, selected %s, counts as %s', (policy, found, selected, outcome) => {
  expect(reuseOutcome(policy, found, selected)).toBe(outcome);
});
