import { describe, expect, test } from 'vitest';
import { isShareable, limitsMatch, REUSE_POLICIES, resolveReusePolicy } from './reuse-policy.ts';

describe('the policy of a buffer', () => {
  const choices = [undefined, ...REUSE_POLICIES];
  const rows = choices.flatMap((buffer) => choices.map((layer) => [buffer, layer] as const));

  test.each(rows)('that says %s in a layer that says %s is its own, then the layer’s, then required', (buffer, layer) => {
    const expected = buffer !== undefined ? buffer : layer !== undefined ? layer : 'required';
    expect(resolveReusePolicy(buffer, layer)).toBe(expected);
  });
});

test.each([
  ['required', true, true],
  ['optional', false, true],
  ['private', false, false],
] as const)('a %s page limits a match: %s, may be seen by others: %s', (policy, limits, shareable) => {
  expect([limitsMatch(policy), isShareable(policy)]).toEqual([limits, shareable]);
});
