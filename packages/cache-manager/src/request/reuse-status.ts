import { coverageAt, type LayerGroupId, type ReusePolicy, type TokenRange } from '@bufferwise/core-policy';
import type { RequestState } from './request-state.ts';

/** What one group can supply at the match of a request. */
export interface GroupReuseStatus {
  readonly groupId: LayerGroupId;
  readonly policy: ReusePolicy;
  /** Whether every page that a request continuing at the match needs is there. Never for private groups, nor without a match. */
  readonly complete: boolean;
  /** Tokens at which the group continues; 0 when it is not complete. */
  readonly endpoint: number;
  /** Token ranges `[begin, end)` that it supplies; none when it is not complete. */
  readonly coverage: readonly TokenRange[];
}

/** The status of every group as found at creation; index = group id. */
export function reuseStatus(state: RequestState): readonly GroupReuseStatus[] {
  const { matched } = state;
  return Object.freeze(
    state.groups.map(({ rules, complete }) =>
      Object.freeze({
        groupId: rules.id,
        policy: rules.policy,
        complete,
        endpoint: complete ? matched : 0,
        coverage: complete ? coverageAt(rules.lifecycle, matched, rules.tokensPerBlock) : [],
      }),
    ),
  );
}
