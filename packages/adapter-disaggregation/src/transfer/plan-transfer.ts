import { isShareable, type Lifecycle, matchNeeds, numTokensNeeded, type TokenRange } from '@bufferwise/core-policy';
import type { TransferLayout } from './transfer-layout.ts';

/** What the receiver has of a group, found when it allocated, and held from then on. */
export interface ReceiverGroup {
  /** Tokens at which the group continues there; 0 where it has nothing. Of a state: the tokens of its snapshot. */
  readonly endpoint: number;
  /** Token ranges that its pages supply. */
  readonly coverage: readonly TokenRange[];
}

/** One page that travels. */
export interface PlannedPage {
  readonly group: number;
  /** Block ordinal. */
  readonly block: number;
  /** Tokens that must have been computed before the page can be read on the sending side. */
  readonly readyAt: number;
}

export interface TransferPlan {
  /** Group by group, then by block. */
  readonly pages: readonly PlannedPage[];
  /** Bytes of the pages. */
  readonly bytes: number;
}

/**
 * The pages that a receiver lacks to go on at a point of hand-over: of each group those that are live there, less those that the
 * receiver has of that very group. What it has of one group says nothing about another. Private pages always travel, as the request
 * moves; a state is right at exactly one number of tokens, so another snapshot is as good as none.
 *
 * Both sides make the same plan of the same status.
 *
 * @param receiver index = group of the layout
 * @param handover tokens that the receiver will have, > 0
 */
export function planTransfer(layout: TransferLayout, receiver: readonly ReceiverGroup[], handover: number): TransferPlan {
  const pages: PlannedPage[] = [];
  let bytes = 0;
  layout.groups.forEach(({ lifecycle, pageBytes }, group) => {
    for (const page of groupPages(layout.tokensPerBlock, lifecycle, group, receiver[group], handover)) {
      pages.push(page);
      bytes += pageBytes;
    }
  });
  return { pages, bytes };
}

function* groupPages(
  tokensPerBlock: number,
  lifecycle: Lifecycle,
  group: number,
  receiver: ReceiverGroup,
  handover: number,
): Iterable<PlannedPage> {
  const mayHave = isShareable(lifecycle.policy);
  const needs = matchNeeds(lifecycle, handover, tokensPerBlock);
  if (needs.kind === 'snapshot') {
    if (!mayHave || receiver.endpoint !== handover) yield { group, block: needs.blockOrdinal, readyAt: handover };
    return;
  }
  if (lifecycle.kind !== 'attention') return;
  for (const { begin, end } of [needs.sinks, needs.window]) {
    for (let block = begin; block < end; block++) {
      const first = block * tokensPerBlock;
      const numTokens = numTokensNeeded(lifecycle, block, handover, tokensPerBlock);
      if (mayHave && isCovered(receiver.coverage, first, first + numTokens)) continue;
      yield { group, block, readyAt: first + numTokens };
    }
  }
}

function isCovered(coverage: readonly TokenRange[], begin: number, end: number): boolean {
  return coverage.some(([from, to]) => from <= begin && end <= to);
}
