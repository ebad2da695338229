import { divUp, StateError } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import type { ManagerState } from '../manager-state.ts';
import type { PageId } from '../page/page-table.ts';
import { forEachLiveBlock, isComplete } from '../request/claim.ts';
import { type PinOptions, PrefixPin } from './prefix-pin.ts';

/**
 * Pins what the matcher has just matched.
 *
 * @returns null when that is more than the pins' share of some pool; nothing has changed then
 * @throws {StateError} `invalid-duration` on a duration that is none
 */
export function pinMatch(
  manager: ManagerState,
  matched: number,
  { durationMs }: PinOptions,
  check: () => void,
): PrefixPin | null {
  if (durationMs !== undefined && !(durationMs > 0 && Number.isFinite(durationMs))) {
    throw new StateError(
      'invalid-duration',
      `pin: durationMs is ${durationMs}; it must be a number of milliseconds above 0, or left out`,
    );
  }
  const { pins } = manager;
  pins.expire();
  const pin = pins.add([...matchedPages(manager, matched), ...backoffPages(manager, matched)], durationMs);
  return pin === -1 ? null : new PrefixPin({ numTokens: matched, pins, pin, check });
}

/** The pages that a request continuing at the match would hold, those of earlier blocks first. */
function matchedPages(manager: ManagerState, matched: number): PageId[] {
  const pages: PageId[] = [];
  if (matched === 0) return pages;
  const { matcher, tree, config } = manager;
  const last = divUp(matched, config.tokensPerBlock) - 1;
  for (const rules of manager.groups) {
    if (!isComplete(manager, { rules }, matched)) continue;
    if (rules.kind === 'ssm')
      pages.push(tree.snapshotAt(matcher.blockAt(last), rules.id, matched - last * config.tokensPerBlock));
    else forEachLiveBlock({ rules }, matched, (ordinal) => pages.push(tree.pageOf(matcher.blockAt(ordinal), rules.id)));
  }
  return pages;
}

/** A match ends `reuseMatchBackoff` tokens before its path does: the pages without which the path would end earlier. */
function backoffPages({ matcher, tree, config, groups }: ManagerState, matched: number): PageId[] {
  const pages: PageId[] = [];
  if (matched === 0) return pages;
  const pathEnd = Math.min(matcher.depths.path, matched + config.reuseMatchBackoff);
  const end = divUp(pathEnd, config.tokensPerBlock);
  for (let ordinal = divUp(matched, config.tokensPerBlock); ordinal < end; ordinal++) {
    const block = matcher.blockAt(ordinal);
    const listed = groups.filter(({ id }) => tree.blocks.firstPage(block, id) !== NONE);
    const needed = listed.filter((group) => group.everyMatchNeeds(ordinal));
    // Where no page is needed, one of any group keeps the block.
    const kept = needed.length > 0 ? needed : listed.slice(0, 1);
    for (const { id } of kept) pages.push(tree.blocks.firstPage(block, id));
  }
  return pages;
}
