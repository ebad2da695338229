import type { Lifecycle } from '@bufferwise/core-policy';
import { formatCount, formatCounted } from './units.ts';

/**
 * What a lifecycle remembers, in words; its policy is not among them.
 *
 * @example lifecycleWords(slidingWindow(1024, { numSinkBlocks: 2 }))   // 'attention to the last 1,024 tokens and the first 2 blocks'
 */
export function lifecycleWords(lifecycle: Lifecycle): string {
  if (lifecycle.kind === 'ssm') return 'recurrent state';
  const { windowSize, numSinkBlocks, sparsityGroup } = lifecycle;
  const seen = windowSize === null ? 'every token' : last(windowSize);
  const sinks = numSinkBlocks === 0 ? '' : ` and ${first(numSinkBlocks)}`;
  const label = sparsityGroup === null ? '' : `, sparsity group ${JSON.stringify(sparsityGroup)}`;
  return `attention to ${seen}${sinks}${label}`;
}

function last(tokens: number): string {
  return tokens === 1 ? 'the last token' : `the last ${formatCounted(tokens, 'token')}`;
}

function first(blocks: number): string {
  return blocks === 1 ? 'the first block' : `the first ${formatCount(blocks)} blocks`;
}
