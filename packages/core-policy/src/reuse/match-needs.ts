import { type BlockRange, divUp } from '../block-range.ts';
import type { AttentionLifecycle, Lifecycle } from '../lifecycle/lifecycle.ts';
import { staleBegin, staleEnd } from '../lifecycle/stale-range.ts';

/**
 * What a lifecycle must have for a sequence to continue at an endpoint.
 * Attention reads pages of blocks, its sinks and its window; recurrent state is one snapshot at exactly that many tokens.
 */
export type MatchNeeds =
  | { kind: 'pages'; sinks: BlockRange; window: BlockRange }
  | { kind: 'snapshot'; blockOrdinal: number; numTokens: number };

/**
 * What a lifecycle needs at `endpoint`, whatever its policy. The last block of a window may be partial: see `numTokensNeeded`.
 *
 * @param endpoint       tokens, > 0
 * @param tokensPerBlock tokens, > 0
 * @example matchNeeds(slidingWindow(6, { numSinkBlocks: 1 }), 20, 4)
 *   // { kind: 'pages', sinks: { begin: 0, end: 1 }, window: { begin: 3, end: 5 } }
 */
export function matchNeeds(lifecycle: Lifecycle, endpoint: number, tokensPerBlock: number): MatchNeeds {
  if (lifecycle.kind === 'ssm') {
    return { kind: 'snapshot', blockOrdinal: snapshotBlock(endpoint, tokensPerBlock), numTokens: endpoint };
  }
  return {
    kind: 'pages',
    sinks: { begin: 0, end: staleBegin(lifecycle, endpoint, tokensPerBlock) },
    window: { begin: staleEnd(lifecycle, endpoint, tokensPerBlock), end: divUp(endpoint, tokensPerBlock) },
  };
}

/** Whether a match at `endpoint` reads the page of a block: a sink or in the window, and not beyond the endpoint. No garbage. */
export function isLive(lifecycle: AttentionLifecycle, blockOrdinal: number, endpoint: number, tokensPerBlock: number): boolean {
  if (blockOrdinal * tokensPerBlock >= endpoint) return false;
  return (
    blockOrdinal < staleBegin(lifecycle, endpoint, tokensPerBlock) ||
    blockOrdinal >= staleEnd(lifecycle, endpoint, tokensPerBlock)
  );
}

/**
 * Tokens for which the page of a block must be good when a match ends at `endpoint`: a whole block, less in the block that
 * the endpoint divides, 0 where the match does not read. No garbage.
 */
export function numTokensNeeded(
  lifecycle: AttentionLifecycle,
  blockOrdinal: number,
  endpoint: number,
  tokensPerBlock: number,
): number {
  if (!isLive(lifecycle, blockOrdinal, endpoint, tokensPerBlock)) return 0;
  return Math.min(tokensPerBlock, endpoint - blockOrdinal * tokensPerBlock);
}

/** The block in which a snapshot after exactly `numTokens` tokens (> 0) is kept: the one that holds the last of them. */
export function snapshotBlock(numTokens: number, tokensPerBlock: number): number {
  return divUp(numTokens, tokensPerBlock) - 1;
}
