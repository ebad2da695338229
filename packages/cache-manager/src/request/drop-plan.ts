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
  /** What the page table counts for each page; another count, or none, stands there once the page is gone. */
  readonly #named: ReadonlyMap<PageId, { count: number }>;
  #dropped = false;

  /** @internal Plans are made by requests. */
  constructor(manager: ManagerState, pageIds: readonly PageId[]) {
    const { plans } = manager.storage.pages;
    this.#manager = manager;
    this.#named = new Map(pageIds.map((page) => [page, plans.get(page) ?? { count: 0 }]));
    for (const [page, plan] of this.#named) {
      plan.count++;
      plans.set(page, plan);
    }
  }

  /** Pages that the plan named when it was made. */
  get numPages(): number {
    return this.#named.size;
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
    if (this.#manager.closed) return 0;
    const count = this.#dropPages();
    this.#manager.afterCall();
    return count;
  }

  /** Carries the plan out unless that was done. */
  [DISPOSE](): void {
    if (!this.#dropped) this.drop();
  }

  #dropPages(): number {
    const { storage, tree } = this.#manager;
    const { plans, holds, block } = storage.pages;
    let count = 0;
    for (const [page, plan] of this.#named) {
      if (plans.get(page) !== plan) continue;
      if (--plan.count > 0) continue;
      plans.delete(page);
      if (holds[page] > 0 || block[page] === NONE) continue;
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
