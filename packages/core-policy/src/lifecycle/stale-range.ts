import { type BlockRange, divDown, divUp } from '../block-range.ts';
import type { Lifecycle } from './lifecycle.ts';

/**
 * Blocks that no later token will read, given how much has been written.
 * The token about to be written is part of the window, hence the `+ 1`.
 *
 * @param historyLength  tokens already written, >= 0
 * @param tokensPerBlock tokens, > 0
 * @returns half-open range of block ordinals, empty when nothing is stale. Blocks before it are sinks, blocks from its
 *   end on are in the window
 * @example staleRange(slidingWindow(4), 10, 4)   // { begin: 0, end: 1 }
 * @see TensorRT-LLM kv_cache_manager_v2/lifeCycleRegistry.h, the attention rule
 */
export function staleRange(lifecycle: Lifecycle, historyLength: number, tokensPerBlock: number): BlockRange {
  return {
    begin: staleBegin(lifecycle, historyLength, tokensPerBlock),
    end: staleEnd(lifecycle, historyLength, tokensPerBlock),
  };
}

/** `staleRange(…).begin`, without garbage. Sink blocks never become stale; recurrent state has none. */
export function staleBegin(lifecycle: Lifecycle, historyLength: number, tokensPerBlock: number): number {
  if (lifecycle.kind === 'ssm') return 0;
  return Math.min(divUp(historyLength, tokensPerBlock), lifecycle.numSinkBlocks);
}

/** `staleRange(…).end`, without garbage. Never falls while `historyLength` rises. */
export function staleEnd(lifecycle: Lifecycle, historyLength: number, tokensPerBlock: number): number {
  if (lifecycle.kind === 'ssm') return divDown(historyLength, tokensPerBlock);
  const begin = staleBegin(lifecycle, historyLength, tokensPerBlock);
  if (lifecycle.windowSize === null) return begin;
  return Math.max(begin, divDown(historyLength + 1 - lifecycle.windowSize, tokensPerBlock));
}
