import { alignDown } from '../block-range.ts';
import type { Lifecycle } from '../lifecycle/lifecycle.ts';

/**
 * The last endpoint, at most `numTokens`, at which pages of a lifecycle can be reused.
 * Optional attention continues only where a block ends, so it must keep the pages that its last whole block needs;
 * everything else can continue anywhere.
 *
 * @param numTokens      tokens, >= 0
 * @param tokensPerBlock tokens, > 0
 */
export function reuseEndpoint(lifecycle: Lifecycle, numTokens: number, tokensPerBlock: number): number {
  const aligned = lifecycle.kind === 'attention' && lifecycle.policy === 'optional';
  return aligned ? alignDown(numTokens, tokensPerBlock) : numTokens;
}
