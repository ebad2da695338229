import { type BlockRange, type Lifecycle, reuseEndpoint, staleRange } from '@bufferwise/core-policy';

/**
 * Blocks of which a request that has written `historyLength` tokens keeps no page.
 *
 * That is the stale range, but for an optional window where commits publish only what a match needs: its last whole block must
 * stay an endpoint, so what that needs is kept until the next block is full.
 *
 * @param historyLength tokens, >= 0
 * @returns half-open range of block ordinals
 */
export function unkeptRange(
  lifecycle: Lifecycle,
  historyLength: number,
  tokensPerBlock: number,
  commitMinSnapshot: boolean,
): BlockRange {
  const isWindow = lifecycle.kind === 'attention' && lifecycle.windowSize !== null;
  const keptAt = commitMinSnapshot && isWindow ? reuseEndpoint(lifecycle, historyLength, tokensPerBlock) : historyLength;
  return staleRange(lifecycle, keptAt, tokensPerBlock);
}
