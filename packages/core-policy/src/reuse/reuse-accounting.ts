import type { ReusePolicy } from './reuse-policy.ts';

/** How a matched page enters the statistics of its group. */
export type ReuseOutcome = 'hit' | 'miss' | 'neither';

/**
 * What a page that a match reads counts as. A hit or a miss was looked for: an optional page that the request did not
 * select, and a private page, were not.
 *
 * @param found    whether the page was there
 * @param selected whether the request selected the page's group; means nothing unless the policy is `optional`
 */
export function reuseOutcome(policy: ReusePolicy, found: boolean, selected: boolean): ReuseOutcome {
  const lookedFor = policy === 'required' || (policy === 'optional' && selected);
  if (!lookedFor) return 'neither';
  return found ? 'hit' : 'miss';
}
