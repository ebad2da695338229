import {
  type BlocksByGroup,
  type ConnectorLayout,
  type FailedPage,
  type LoadablePrefix,
  longestLoad,
  slotOfBlock,
} from '@bufferwise/adapter-kit';

/**
 * What is left of a request after some pages have failed to load: for the request that loaded them, and for every other one that shares them.
 * An engine asks it for each of its requests, takes back those that came out shorter, and looks them up again: there may be
 * an older checkpoint of recurrent state in the store.
 *
 * @param request its slots, and how many tokens it relies on; state is the one after exactly that many
 * @returns `request.tokens` and all groups it holds when it holds no failed page; else the longest prefix of whole blocks that is good
 *   for all required groups, 0 tokens when there is none, and the groups that are good there
 */
export function goodPrefix(
  { groups, tokensPerBlock }: ConnectorLayout,
  request: { readonly blocks: BlocksByGroup; readonly tokens: number },
  failedPages: readonly FailedPage[],
): LoadablePrefix {
  const { blocks, tokens } = request;
  const held = groups.filter(({ groupId }) => blocks[groupId] !== undefined);
  const hasFailed = ({ groupId, slot }: FailedPage) => blocks[groupId]?.includes(slot) ?? false;
  const mine = failedPages.filter(hasFailed);
  if (mine.length === 0) return { end: tokens, groups: held.map(({ groupId }) => groupId) };
  const failed = new Set(mine.map(({ groupId, slot }) => `${groupId} ${slot}`));
  const prompt = { numTokens: tokens + 1, computedTokens: 0, tokensPerBlock };
  const good = longestLoad(groups, prompt, (group, ordinal) => {
    const slot = slotOfBlock(group, blocks, ordinal);
    const isHere = group.lifecycle.kind === 'attention' || (ordinal + 1) * tokensPerBlock === tokens;
    return isHere && slot >= 0 && !failed.has(`${group.groupId} ${slot}`);
  });
  return good ?? { end: 0, groups: [] };
}
