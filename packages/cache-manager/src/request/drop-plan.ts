import { divUp, reuseEndpoint, StateError } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import { DISPOSE } from '../dispose.ts';
import type { ManagerState } from '../manager-state.ts';
import type { PageId } from '../page/page-table.ts';
import { forEachLiveBlock } from './claim.ts';
import { Matcher } from './match.ts';
import type { RequestState } from './request-state.ts';

/**
 * Published pages that are of use only to whoever continues exactly where a request ended: its windows and its snapshot. Made by
 * `KvCache.planCommittedBlockDrop`, for a caller who knows that nobody will, once a longer request has taken over.
 *
 * Plans may name the same pages. Each page goes with the last of its plans.
 */
export class DropPlan {
  readonly #manager: ManagerState;
  readonly #pages: readonly PageId[];
  readonly #generations: readonly number[];
  #dropped = false;

  /** @internal Plans are made by requests. */
  constructor(manager: ManagerState, pageIds: readonly PageId[]) {
    const { pages } = manager.storage;
    this.#manager = manager;
    this.#pages = pageIds;
    this.#generations = pageIds.map((page) => pages.generation[page]);
    for (const page of pageIds) pages.plans[page]++;
  }

  /** Pages that the plan named when it was made. */
  get numPages(): number {
    return this.#pages.length;
  }

  /**
   * Drops every page that no other plan names and nobody holds. A page that is held stays, and is left to eviction later.
   *
   * @returns pages that were dropped
   * @throws {StateError} `already-dropped` the second time
   */
  drop(): number {
    if (this.#dropped) throw new StateError('already-dropped', 'drop: the plan was carried out before; make another one');
    this.#manager.checkNotAsking('drop');
    this.#dropped = true;
    return this.#manager.closed ? 0 : this.#dropPages();
  }

  /** Carries the plan out unless that was done. */
  [DISPOSE](): void {
    if (!this.#dropped) this.drop();
  }

  #dropPages(): number {
    const { storage, tree } = this.#manager;
    const { pages } = storage;
    let count = 0;
    // From the tail on, so that what a block takes along is not missed.
    for (let i = this.#pages.length - 1; i >= 0; i--) {
      const page = this.#pages[i];
      if (pages.generation[page] !== this.#generations[i]) continue;
      pages.plans[page]--;
      if (pages.plans[page] > 0 || pages.holds[page] > 0 || pages.block[page] === NONE) continue;
      tree.remove(page);
      count++;
    }
    return count;
  }
}

/**
 * Plans to drop what only a request that continues exactly at the committed count can use: of every window the pages that are live
 * there, sinks excepted, and the snapshot. Full attention is of use to every longer prefix and stays. An optional group
 * contributes what it has; private groups have nothing in the tree.
 *
 * @returns null when nothing was committed, or when a match does not reach exactly the committed count any more
 * @throws {StateError} `plan-closed`, and `plan-committing` before `stopCommitting`
 */
export function planCommittedBlockDrop(state: RequestState): DropPlan | null {
  state.manager.checkNotAsking('planCommittedBlockDrop');
  if (state.status === 'closed')
    throw new StateError('plan-closed', 'planCommittedBlockDrop: the request is closed; plan before closing it');
  if (state.mayCommit)
    throw new StateError('plan-committing', 'planCommittedBlockDrop: the request may still commit; stopCommitting() first');
  if (state.committed === 0) return null;
  const matcher = exactMatcher(state.manager);
  if (matcher.match(state.manager.tree.root(state.scope), state.tokens) !== state.committed) return null;
  return new DropPlan(state.manager, pagesOfEnd(state, matcher));
}

/** A backoff shortens what requests reuse, not what is there. */
function exactMatcher({ tree, groups, config }: ManagerState): Matcher {
  const { tokensPerBlock, enablePartialReuse: partialReuse } = config;
  return new Matcher({ tree, groups, tokensPerBlock, partialReuse, backoff: 0 });
}

function pagesOfEnd(state: RequestState, matcher: Matcher): PageId[] {
  const { tree } = state.manager;
  const { committed } = state;
  const found: PageId[] = [];
  const add = (page: PageId) => {
    if (page !== NONE) found.push(page);
  };
  for (const group of state.groups) {
    const { rules } = group;
    if (rules.policy === 'private') continue;
    if (!group.isAttention) {
      const last = divUp(committed, rules.tokensPerBlock) - 1;
      add(tree.snapshotAt(matcher.blockAt(last), rules.id, committed - last * rules.tokensPerBlock));
      continue;
    }
    if (rules.windowSize === null) continue;
    forEachLiveBlock(group, reuseEndpoint(rules.lifecycle, committed, rules.tokensPerBlock), (ordinal) => {
      if (ordinal >= rules.numSinkBlocks) add(tree.pageOf(matcher.blockAt(ordinal), rules.id));
    });
  }
  return found;
}
