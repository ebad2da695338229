import type { Lifecycle } from '../lifecycle/lifecycle.ts';
import { staleBegin, staleEnd } from '../lifecycle/stale-range.ts';
import { reuseEndpoint } from './reuse-endpoint.ts';
import { isShareable } from './reuse-policy.ts';

/** Token positions from the first up to, not including, the second. */
export type TokenRange = readonly [begin: number, end: number];

/**
 * Whether a group can be complete at an endpoint at all, given every page it could ask for. Never at 0, never a private
 * group, and optional attention only where a block ends.
 */
export function canCompleteAt(lifecycle: Lifecycle, endpoint: number, tokensPerBlock: number): boolean {
  return endpoint > 0 && isShareable(lifecycle.policy) && reuseEndpoint(lifecycle, endpoint, tokensPerBlock) === endpoint;
}

/**
 * Tokens that a complete group supplies at an endpoint: for attention the whole sink blocks and the blocks of the live
 * window, adjacent ranges merged and the last one cut at the endpoint; for recurrent state everything.
 *
 * @param endpoint       tokens, >= 0
 * @param tokensPerBlock tokens, > 0
 * @returns ranges in ascending order. Empty where the group cannot be complete, and also for a window so short that at
 *   this endpoint it reads nothing
 * @example coverageAt(slidingWindow(6, { numSinkBlocks: 1 }), 20, 4)   // [[0, 4], [12, 20]]
 */
export function coverageAt(lifecycle: Lifecycle, endpoint: number, tokensPerBlock: number): readonly TokenRange[] {
  if (!canCompleteAt(lifecycle, endpoint, tokensPerBlock)) return [];
  if (lifecycle.kind === 'ssm') return [[0, endpoint]];
  const sinkEnd = Math.min(endpoint, staleBegin(lifecycle, endpoint, tokensPerBlock) * tokensPerBlock);
  const windowBegin = Math.min(endpoint, staleEnd(lifecycle, endpoint, tokensPerBlock) * tokensPerBlock);
  if (sinkEnd === windowBegin) return [[0, endpoint]];
  const ranges: TokenRange[] = [];
  if (sinkEnd > 0) ranges.push([0, sinkEnd]);
  if (windowBegin < endpoint) ranges.push([windowBegin, endpoint]);
  return ranges;
}
