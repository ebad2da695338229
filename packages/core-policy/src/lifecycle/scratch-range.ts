import { type BlockRange, divUp } from '../block-range.ts';
import { reuseEndpoint } from '../reuse/reuse-endpoint.ts';
import type { Lifecycle } from './lifecycle.ts';
import { staleBegin, staleEnd } from './stale-range.ts';

/** One step of a request, in tokens: 0 <= historyLength <= capacity. */
export interface ScratchStep {
  /** Tokens written before the step. */
  historyLength: number;
  /** Tokens there is room for once the step has run. */
  capacity: number;
  /** Tokens at the end of the capacity that may be taken back, >= 0. What they can read stays out of scratch. */
  maxRewindLen: number;
}

/**
 * Blocks of this step that will be stale once it is done, so that they can share a few slots meanwhile.
 * Only attention with a window has any. A block that history has begun to fill is never one of them.
 *
 * @param tokensPerBlock tokens, > 0
 * @returns half-open range of block ordinals; `begin === end` when there is none
 * @example scratchRange(slidingWindow(4), { historyLength: 0, capacity: 16, maxRewindLen: 4 }, 4)   // { begin: 0, end: 2 }
 */
export function scratchRange(lifecycle: Lifecycle, step: ScratchStep, tokensPerBlock: number): BlockRange {
  const { historyLength, capacity, maxRewindLen } = step;
  return {
    begin: scratchBegin(lifecycle, historyLength, capacity, maxRewindLen, tokensPerBlock),
    end: scratchEnd(lifecycle, historyLength, capacity, maxRewindLen, tokensPerBlock),
  };
}

/** `scratchRange(…).begin`, without garbage. */
export function scratchBegin(
  lifecycle: Lifecycle,
  historyLength: number,
  capacity: number,
  maxRewindLen: number,
  tokensPerBlock: number,
): number {
  const firstNewBlock = divUp(historyLength, tokensPerBlock);
  if (lifecycle.kind === 'ssm') return firstNewBlock;
  const settled = settledLength(lifecycle, capacity, maxRewindLen, tokensPerBlock);
  return Math.max(firstNewBlock, staleBegin(lifecycle, settled, tokensPerBlock));
}

/** `scratchRange(…).end`, without garbage; at least `scratchBegin(…)`. */
export function scratchEnd(
  lifecycle: Lifecycle,
  historyLength: number,
  capacity: number,
  maxRewindLen: number,
  tokensPerBlock: number,
): number {
  const begin = scratchBegin(lifecycle, historyLength, capacity, maxRewindLen, tokensPerBlock);
  if (lifecycle.kind === 'ssm') return begin;
  const settled = settledLength(lifecycle, capacity, maxRewindLen, tokensPerBlock);
  return Math.max(begin, Math.min(staleEnd(lifecycle, settled, tokensPerBlock), divUp(capacity, tokensPerBlock)));
}

/** History that is certain once the step is done; an optional group must keep the pages of its aligned endpoint there. */
function settledLength(lifecycle: Lifecycle, capacity: number, maxRewindLen: number, tokensPerBlock: number): number {
  return reuseEndpoint(lifecycle, Math.max(0, capacity - maxRewindLen), tokensPerBlock);
}
