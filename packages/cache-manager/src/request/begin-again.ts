import { releasePages } from './block-pages.ts';
import { claimMatch } from './claim.ts';
import { publishTail, restorePath } from './publish.ts';
import type { RequestState } from './request-state.ts';

/**
 * A suspended request that lost pages begins again, as one that was just opened on its committed tokens: it claims what is
 * left of them, and its next resume is a first one. What it had published nowhere else is published before, as when it closes.
 *
 * Going on in the middle would not do: whatever is missing has to be computed by running the model over the tokens, from a
 * point at which every group has what it needs. That point is a match.
 */
export function beginAgain(state: RequestState): void {
  const { matcher, tree } = state.manager;
  if (state.mayCommit && state.hasCommitted) {
    restorePath(state, state.committed);
    const stateIsThere = state.capacity === state.history && state.history === state.committed;
    publishTail(state, 'move', { tail: true, state: stateIsThere });
  }
  releasePages(state);
  const matched = matcher.match(tree.root(state.scope), state.tokens, state.requireOptional);
  state.beginAgain(matcher.depths, state.tokens.prefix(matched));
  claimMatch(state);
}
