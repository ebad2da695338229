import { BufferwiseError } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import type { PageId } from '../page/page-table.ts';
import { letGo, setPageAt } from './block-pages.ts';
import type { GroupState } from './group-state.ts';
import type { RequestState } from './request-state.ts';

/** A page that a resume makes: fresh, or as a copy of one that the request names until then. */
export interface NewPage {
  readonly group: GroupState;
  /** NONE for recurrent state. */
  readonly ordinal: number;
  readonly beam: number;
  readonly priority: number;
  /** The page that it is a copy of, NONE for none: an attention page is left as it is then, recurrent state is cleared. */
  readonly source: PageId;
  /** The page, once there is one. */
  page: PageId;
}

/** A declined claim whose slot a new page takes over. */
interface Exchange {
  claim: PageId;
  group: GroupState;
  ordinal: number;
  target: NewPage;
}

/**
 * Makes the pages whose content the device has to copy or clear, except those that have come from a colder tier already. That
 * is the part of a resume that can still throw, so nothing else has changed when it does: where only the slots of declined
 * claims are left, it writes into those and gives up the claims when the device has taken the commands.
 */
export function createFilledPages(
  state: RequestState,
  planned: readonly NewPage[],
  isDeclined: (group: GroupState) => boolean,
): void {
  const { storage, commands, evictor } = state.manager;
  const created: PageId[] = [];
  const exchanges: Exchange[] = [];
  for (const target of planned) {
    if (target.page !== NONE || !isFilled(target)) continue;
    const { poolGroup, id } = target.group.rules;
    let page: PageId;
    // What is left to be moved must do for the other pages, too.
    if (evictor.tryFree(poolGroup, 1, true)) {
      page = target.page = storage.createHeld(id, target.priority);
      created.push(page);
    } else {
      const exchange = findExchange(state, target, isDeclined, exchanges);
      exchanges.push(exchange);
      page = exchange.claim;
    }
    const slot = storage.pages.slot[page];
    if (target.source === NONE) commands.clear(poolGroup, slot);
    else commands.copy(id, poolGroup, storage.pages.slot[target.source], slot);
  }
  commands.execute(created);
  for (const { claim, group, ordinal, target } of exchanges) {
    setPageAt(group, ordinal, 0, NONE);
    target.page = storage.createInPlaceOf(claim, target.group.rules.id, target.priority);
  }
}

/** Makes the other pages. The declined claims were let go of. */
export function createEmptyPages(state: RequestState, planned: readonly NewPage[]): void {
  const { storage, demand } = state.manager;
  const missing = planned.filter(({ page }) => page === NONE);
  demand.reset();
  for (const { group } of missing) demand.want(group.rules.poolGroup, 1);
  demand.makeRoom();
  for (const target of missing) target.page = storage.createHeld(target.group.rules.id, target.priority);
}

/** Makes a page the request's own. The page that it is a copy of is let go. The request counts as suspended still. */
export function installPage(state: RequestState, { group, ordinal, beam, page, source }: NewPage): void {
  setPageAt(group, ordinal, beam, page);
  if (source !== NONE) letGo(state, source);
}

function isFilled({ group, source }: NewPage): boolean {
  return source !== NONE || !group.isAttention;
}

/** A declined claim of the same pool group that nobody else holds. There is one: the demand counted it as room. */
function findExchange(
  state: RequestState,
  target: NewPage,
  isDeclined: (group: GroupState) => boolean,
  taken: readonly Exchange[],
): Exchange {
  const { holds, tier } = state.manager.storage.pages;
  const isSpare = (page: PageId) =>
    page !== NONE && holds[page] === 1 && tier[page] === 0 && !taken.some(({ claim }) => claim === page);
  for (const group of state.groups) {
    if (group.rules.poolGroup !== target.group.rules.poolGroup || !isDeclined(group)) continue;
    if (isSpare(group.statePage)) return { claim: group.statePage, group, ordinal: NONE, target };
    for (let ordinal = state.numBlocks - 1; ordinal >= 0; ordinal--) {
      const claim = group.page(ordinal);
      if (isSpare(claim)) return { claim, group, ordinal, target };
    }
  }
  throw new BufferwiseError('invariant', 'resume: the demand was met with claims that do not exist');
}
