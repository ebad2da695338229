import { divUp, StateError } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import type { ManagerState } from '../manager-state.ts';
import type { PageId } from '../page/page-table.ts';
import { forEachLiveBlock, isComplete } from '../request/claim.ts';
import type { GroupRules } from '../request/group-rules.ts';
import type { BlockId, BlockTable } from '../tree/block-table.ts';
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
  const pages = matchedPages(manager, matched);
  const pin = pins.add([...pages, ...pathPages(manager, matched, pages)], durationMs);
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

/**
 * What the path to the match hangs on besides: a match ends `reuseMatchBackoff` tokens before its path does, and at the end of a
 * window of one token it needs no page at all.
 */
function pathPages({ matcher, tree, config, groups, storage }: ManagerState, matched: number, held: readonly PageId[]): PageId[] {
  const pages: PageId[] = [];
  if (matched === 0) return pages;
  const { blocks } = tree;
  const pathEnd = matcher.endsInSibling ? matched : Math.min(matcher.depths.path, matched + config.reuseMatchBackoff);
  const end = divUp(pathEnd, config.tokensPerBlock);
  const blockAt = (ordinal: number) => (matcher.endsInSibling ? matcher.blockAt(ordinal) : matcher.pathBlockAt(ordinal));
  for (let ordinal = divUp(matched, config.tokensPerBlock); ordinal < end; ordinal++) {
    for (const group of groups) {
      const page = blocks.firstPage(blockAt(ordinal), group.id);
      if (page !== NONE && group.everyMatchNeeds(ordinal)) pages.push(page);
    }
  }
  const last = blockAt(end - 1);
  if (![...held, ...pages].some((page) => storage.pages.block[page] === last)) pages.push(anyPageBelow(blocks, groups, last));
  return pages;
}

/** A page that a block lists, or a block behind it: what has none is gone. */
function anyPageBelow(blocks: BlockTable, groups: readonly GroupRules[], block: BlockId): PageId {
  for (let at = block; ; at = blocks.childRoot[at]) {
    const listed = groups.find(({ id }) => blocks.firstPage(at, id) !== NONE);
    if (listed !== undefined) return blocks.firstPage(at, listed.id);
  }
}
