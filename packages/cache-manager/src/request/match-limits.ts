import type { LayerGroupId } from '@bufferwise/core-policy';
import type { ManagerState } from '../manager-state.ts';

/**
 * Why a match goes no further:
 *
 * | reason | what it means | way out |
 * | --- | --- | --- |
 * | `not-published` | nothing with these tokens is there: it never was, or was evicted | commit it; more memory; a pin |
 * | `backoff` | the config's `reuseMatchBackoff` | a smaller one |
 * | `pages-missing` | attention without a window, or its sinks, lack a page | as `not-published` |
 * | `window-missing` | the window before any further end is not whole | a commit that ends there; `rebalance` |
 * | `no-snapshot` | there is no snapshot at any further end | commit there with `snapshot: true`: see `snapshotPoints` |
 * | `no-common-end` | groups have what they need only at different ends | snapshots where windows are whole |
 */
export type MatchLimitReason = 'not-published' | 'backoff' | 'pages-missing' | 'window-missing' | 'no-snapshot' | 'no-common-end';

/** One thing that shortened a match. */
export interface MatchLimit {
  readonly reason: MatchLimitReason;
  /** The group that lacks something; null where it is none. */
  readonly groupId: LayerGroupId | null;
  /** Tokens that this alone would have allowed. */
  readonly endpoint: number;
}

const NO_LIMITS: readonly MatchLimit[] = Object.freeze([]);

/** All that shortened the last match of `lookedUp` tokens, the mildest first. Empty when everything was found. */
export function matchLimits({ matcher, config }: ManagerState, lookedUp: number): readonly MatchLimit[] {
  const { path, usable } = matcher.depths;
  if (usable === lookedUp) return NO_LIMITS;
  const limits: MatchLimit[] = [];
  if (path < lookedUp) limits.push({ reason: 'not-published', groupId: null, endpoint: path });
  const allowed = Math.max(0, path - config.reuseMatchBackoff);
  if (allowed < path) limits.push({ reason: 'backoff', groupId: null, endpoint: allowed });
  if (usable < allowed) {
    for (const { rules, endpoint } of matcher.groupEnds(allowed)) {
      if (endpoint >= allowed) continue;
      const reason = rules.kind === 'ssm' ? 'no-snapshot' : rules.windowSize === null ? 'pages-missing' : 'window-missing';
      // Another path may have taken the match further than the one that is known longest.
      limits.push({ reason, groupId: rules.id, endpoint: Math.max(endpoint, usable) });
    }
  }
  limits.sort((a, b) => b.endpoint - a.endpoint);
  const least = limits.at(-1)?.endpoint ?? lookedUp;
  if (usable < least) limits.push({ reason: 'no-common-end', groupId: null, endpoint: usable });
  return Object.freeze(limits);
}
