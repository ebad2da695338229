import { type LayerGroupId, matchNeeds } from '@bufferwise/core-policy';
import type { BlocksByGroup, ConnectorGroup } from './kv-connector.ts';

/**
 * Blocks of a group whose pages must come from outside, so that a request which has `computedTokens` can continue at `end`: for attention
 * the sinks and the window, without what is there; for recurrent state the one that was kept at exactly `end`.
 *
 * @param end tokens, whole blocks, above `computedTokens`
 */
export function blocksToLoad(
  { lifecycle }: ConnectorGroup,
  computedTokens: number,
  end: number,
  tokensPerBlock: number,
): readonly number[] {
  const needs = matchNeeds(lifecycle, end, tokensPerBlock);
  if (needs.kind === 'snapshot') return [needs.blockOrdinal];
  const firstMissing = Math.floor(computedTokens / tokensPerBlock);
  const { sinks, window } = needs;
  return [...range(Math.max(sinks.begin, firstMissing), sinks.end), ...range(Math.max(window.begin, firstMissing), window.end)];
}

/**
 * Blocks of a group that can be kept when a step has written up to `writtenTokens`: for attention the whole ones from block `first` on; for recurrent
 * state the last one, when the step ended exactly there.
 */
export function blocksToSave(
  { lifecycle }: ConnectorGroup,
  first: number,
  writtenTokens: number,
  tokensPerBlock: number,
): readonly number[] {
  const end = Math.floor(writtenTokens / tokensPerBlock);
  if (lifecycle.kind === 'attention') return range(first, end);
  return end > 0 && writtenTokens % tokensPerBlock === 0 ? [end - 1] : [];
}

/** Where a request holds the page of a block, -1 where it holds none. */
export function slotOfBlock({ groupId, lifecycle }: ConnectorGroup, blocks: BlocksByGroup, ordinal: number): number {
  return blocks[groupId]?.[lifecycle.kind === 'attention' ? ordinal : 0] ?? -1;
}

/** What can be loaded of a prompt: the end in tokens, and the groups that can continue there. */
export interface LoadablePrefix {
  readonly end: number;
  readonly groups: readonly LayerGroupId[];
}

/**
 * The longest prefix of a prompt, beyond `computedTokens`, for which all required groups have what they need; null when there is none. The
 * last token is never part of it: it is always computed, as something has to come out.
 *
 * @param isThere whether the page of a block can be loaded
 */
export function longestLoad<Group extends ConnectorGroup>(
  groups: readonly Group[],
  { numTokens, computedTokens, tokensPerBlock }: { numTokens: number; computedTokens: number; tokensPerBlock: number },
  isThere: (group: Group, ordinal: number) => boolean,
): LoadablePrefix | null {
  for (let block = Math.floor((numTokens - 1) / tokensPerBlock); block * tokensPerBlock > computedTokens; block--) {
    const end = block * tokensPerBlock;
    const complete = groups.filter((group) =>
      blocksToLoad(group, computedTokens, end, tokensPerBlock).every((ordinal) => isThere(group, ordinal)),
    );
    if (groups.every((group) => group.lifecycle.policy !== 'required' || complete.includes(group)))
      return { end, groups: complete.map(({ groupId }) => groupId) };
  }
  return null;
}

const range = (begin: number, end: number) => Array.from({ length: Math.max(0, end - begin) }, (_, i) => begin + i);
