import { StateError } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import type { PageId } from '../page/page-table.ts';
import type { GroupState } from './group-state.ts';
import { RequestState } from './request-state.ts';
import { hasScratch } from './scratch.ts';

/** How a request forks off. */
export interface ForkOptions {
  /** The caller's name for the new request. Default: none. */
  id?: number;
}

/**
 * Opens an active request that continues where another one is: same lengths, same choice of groups, same right to publish.
 * Full blocks before the history are held by both. Everything that either may write again is the new one's own: the partial
 * last block and the room behind it, recurrent state, and all private pages.
 *
 * @returns null when there is no room; nothing has changed then
 * @throws {StateError} in the wrong state; whatever the device throws when it refuses the copies. Nothing has changed then,
 *   except that pages evicted to make room stay evicted
 */
export function fork(source: RequestState, options: ForkOptions): RequestState | null {
  const { manager } = source;
  manager.checkNotAsking('fork');
  checkFork(source);
  const { demand, commands } = manager;
  demand.reset();
  for (const group of source.groups) demand.want(group.rules.poolGroup, countOwnPages(source, group));
  if (!demand.fits()) return null;

  demand.makeRoom();
  const created: PageId[] = [];
  for (const group of source.groups) orderPages(source, group, created);
  commands.execute(created);
  manager.recorder.branched(created);

  const forked = RequestState.continuing(source, options.id);
  let next = 0;
  source.groups.forEach((group, index) => {
    next = takePages(source, group, forked.groups[index], created, next);
    if (group.isAttention) forked.groups[index].showPages(manager.storage.pages, forked.numBlocks, forked.history);
  });
  manager.open.add(forked);
  return forked;
}

function checkFork(source: RequestState): void {
  if (source.status !== 'active')
    throw new StateError(`fork-${source.status}`, `fork: the request is ${source.status}; resume it first`);
  if (source.ended)
    throw new StateError(
      'fork-ended',
      'fork: the last commit had `end: true`, its pages were moved into the tree; open a request on its tokens',
    );
  if (source.beamWidth > 1)
    throw new StateError('several-beams', `fork: the request carries ${source.beamWidth} beams; keepBeam(index) first`);
  if (hasScratch(source)) {
    throw new StateError(
      'scratch-in-use',
      `fork: blocks of this step are scratch up to token ${source.capacity}; finish it, with a resize or commit that raises the history`,
    );
  }
}

/** Whether the new request has a page of its own where the source has this one. */
function isOwn(source: RequestState, group: GroupState, ordinal: number): boolean {
  return group.rules.policy === 'private' || (ordinal + 1) * source.manager.config.tokensPerBlock > source.history;
}

function countOwnPages(source: RequestState, group: GroupState): number {
  if (!group.isAttention) return 1;
  let count = 0;
  for (let ordinal = 0; ordinal < source.numBlocks; ordinal++)
    if (group.page(ordinal) !== NONE && isOwn(source, group, ordinal)) count++;
  return count;
}

/** Creates the new request's own pages of a group, and orders their content as far as it was written. */
function orderPages(source: RequestState, group: GroupState, created: PageId[]): void {
  const { storage, commands, config } = source.manager;
  const order = (page: PageId, isWritten: boolean) => {
    const own = storage.createHeld(group.rules.id, storage.pages.priority[page]);
    created.push(own);
    if (isWritten) commands.copy(group.rules.id, group.rules.poolGroup, storage.pages.slot[page], storage.pages.slot[own]);
  };
  if (!group.isAttention) {
    order(group.statePage, true);
    return;
  }
  for (let ordinal = 0; ordinal < source.numBlocks; ordinal++) {
    const page = group.page(ordinal);
    if (page !== NONE && isOwn(source, group, ordinal)) order(page, ordinal * config.tokensPerBlock < source.history);
  }
}

/** Gives the new request what is its own, from `next` on in the order of creation, and holds the rest with the source. Returns where it ended. */
function takePages(
  source: RequestState,
  group: GroupState,
  target: GroupState,
  created: readonly PageId[],
  next: number,
): number {
  let taken = next;
  if (!group.isAttention) {
    target.statePage = created[taken++];
    return taken;
  }
  for (let ordinal = 0; ordinal < source.numBlocks; ordinal++) {
    const page = group.page(ordinal);
    if (page === NONE) continue;
    if (isOwn(source, group, ordinal)) {
      target.setPage(ordinal, created[taken++]);
      continue;
    }
    source.manager.storage.hold(page);
    target.setPage(ordinal, page);
  }
  return taken;
}
