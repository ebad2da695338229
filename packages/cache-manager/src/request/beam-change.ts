import { NONE } from '../columns.ts';
import type { PageId } from '../page/page-table.ts';
import type { GroupState } from './group-state.ts';
import type { RequestState } from './request-state.ts';

/**
 * One change of the beams of a request: the new beam i continues from the present beam `parents[i]`.
 *
 * What has been written stays where it is. Full blocks are shared; the first child of a beam takes over its partial last
 * block, its state and the room behind. Each further child gets the pages of a beam without children, or new ones, with a
 * copy of the partial block and of the state. Private pages are never shared by two beams: all of them go the way of a
 * partial block. So as many beams as before need no new page.
 *
 * Count the demand, make room, order the copies, hand them in, and only then apply.
 */
export class BeamChange {
  /** Pages made for children that found none to take over: by group, by block, by child. */
  readonly created: PageId[] = [];
  readonly #state: RequestState;
  readonly #parents: Int32Array;
  /** Whose pages each child goes on writing in; NONE where it gets new ones. */
  readonly #bodies: Int32Array;
  readonly #numBefore: number;
  /** The pages of the present beams in the block that is being looked at. */
  readonly #old: Int32Array;
  #numTaken = 0;

  constructor(state: RequestState, parents: Int32Array) {
    this.#state = state;
    this.#parents = parents;
    this.#numBefore = state.beamWidth;
    this.#bodies = bodiesOf(parents, this.#numBefore);
    this.#old = new Int32Array(this.#numBefore);
  }

  /** Adds to the manager's demand, which the caller has reset. */
  addDemand(): void {
    const numNew = Math.max(0, this.#parents.length - this.#numBefore);
    for (const group of this.#state.groups)
      this.#state.manager.demand.want(group.rules.poolGroup, numNew * this.#countOwnPages(group));
  }

  /** Creates the new pages, for which there is room, and orders the copies. Nobody names the pages yet. */
  orderCopies(): void {
    const { tokensPerBlock } = this.#state.manager.config;
    for (const group of this.#state.groups) {
      if (!group.isAttention) {
        this.#orderCopiesOf(group, (beam) => group.row(beam).statePage, true);
        continue;
      }
      for (let ordinal = this.#ownBegin(group); ordinal < this.#state.numBlocks; ordinal++) {
        if (group.page(ordinal) === NONE) continue;
        this.#orderCopiesOf(group, (beam) => group.page(ordinal, beam), ordinal * tokensPerBlock < this.#state.history);
      }
    }
  }

  /** Makes the children the beams of the request. Cannot fail. */
  apply(): void {
    const numAfter = this.#parents.length;
    for (const group of this.#state.groups) {
      if (numAfter > this.#numBefore) group.setNumBeams(numAfter);
      if (group.isAttention) this.#applyToBlocks(group);
      else this.#applyToState(group);
      group.setNumBeams(numAfter);
    }
    this.#state.beamWidth = numAfter;
  }

  /** First block of which every beam has a page of its own: it is written again, or private. */
  #ownBegin(group: GroupState): number {
    return group.rules.policy === 'private' ? 0 : Math.floor(this.#state.history / this.#state.manager.config.tokensPerBlock);
  }

  /** Pages that a beam has to itself. */
  #countOwnPages(group: GroupState): number {
    if (!group.isAttention) return 1;
    let count = 0;
    for (let ordinal = this.#ownBegin(group); ordinal < this.#state.numBlocks; ordinal++)
      if (group.page(ordinal) !== NONE) count++;
    return count;
  }

  #orderCopiesOf(group: GroupState, pageOf: (beam: number) => PageId, isWritten: boolean): void {
    const { storage, commands } = this.#state.manager;
    const { pages } = storage;
    for (let child = 0; child < this.#parents.length; child++) {
      const body = this.#bodies[child];
      if (body === this.#parents[child]) continue;
      const source = pageOf(this.#parents[child]);
      const target = body === NONE ? storage.createHeld(group.rules.id, pages.priority[source]) : pageOf(body);
      if (body === NONE) this.created.push(target);
      if (isWritten) commands.copy(group.rules.id, group.rules.poolGroup, pages.slot[source], pages.slot[target]);
    }
  }

  #applyToState(group: GroupState): void {
    for (let beam = 0; beam < this.#numBefore; beam++) this.#old[beam] = group.row(beam).statePage;
    this.#handOver((child, page) => {
      group.row(child).statePage = page;
    });
  }

  #applyToBlocks(group: GroupState): void {
    const { numBlocks } = this.#state;
    const ownBegin = this.#ownBegin(group);
    const numAfter = this.#parents.length;
    // One beam shares all of its full blocks with those that begin here.
    if (this.#numBefore === 1) group.sharedEnd = ownBegin;
    for (let beam = this.#numBefore; beam < numAfter; beam++) {
      group.indices(numBlocks, beam).set(group.indices(numBlocks).subarray(0, group.sharedEnd));
    }
    for (let ordinal = group.sharedEnd; ordinal < numBlocks; ordinal++) {
      if (group.page(ordinal) === NONE) continue;
      for (let beam = 0; beam < this.#numBefore; beam++) this.#old[beam] = group.page(ordinal, beam);
      if (ordinal < ownBegin) this.#share(group, ordinal);
      else this.#handOver((child, page) => group.setPage(ordinal, page, child));
      this.#show(group, ordinal);
    }
    if (numAfter === 1) group.sharedEnd = 0;
    else this.#joinCommon(group, ownBegin);
  }

  /** Every child names the page of its parent. */
  #share(group: GroupState, ordinal: number): void {
    const { storage } = this.#state.manager;
    for (let child = 0; child < this.#parents.length; child++) {
      const page = this.#old[this.#parents[child]];
      storage.hold(page);
      group.setPage(ordinal, page, child);
    }
    for (const page of this.#old) storage.release(page);
  }

  /** Every child gets the page of its body, or the next new one; what no child goes on writing in is let go. */
  #handOver(setPage: (child: number, page: PageId) => void): void {
    const bodies = this.#bodies;
    for (let child = 0; child < bodies.length; child++) {
      setPage(child, bodies[child] === NONE ? this.created[this.#numTaken++] : this.#old[bodies[child]]);
    }
    if (bodies.length >= this.#numBefore) return;
    for (let beam = 0; beam < this.#numBefore; beam++)
      if (!bodies.includes(beam)) this.#state.manager.storage.release(this.#old[beam]);
  }

  #show(group: GroupState, ordinal: number): void {
    const isLive = group.rules.isLive(ordinal, this.#state.history);
    const { slot } = this.#state.manager.storage.pages;
    for (let beam = 0; beam < this.#parents.length; beam++)
      group.row(beam).showIndex(ordinal, isLive ? slot[group.page(ordinal, beam)] : NONE);
  }

  /** Blocks that have become the same in all beams are named once from now on, so that a long search does not look at them again. */
  #joinCommon(group: GroupState, end: number): void {
    const numBeams = this.#parents.length;
    for (; group.sharedEnd < end; group.sharedEnd++) {
      const ordinal = group.sharedEnd;
      const page = group.page(ordinal);
      for (let beam = 1; beam < numBeams; beam++) if (group.page(ordinal, beam) !== page) return;
      for (let beam = 1; page !== NONE && beam < numBeams; beam++) {
        group.setPage(ordinal, NONE, beam);
        this.#state.manager.storage.release(page);
      }
    }
  }
}

/** Its own pages where a beam continues itself; then those of the parent, for the first child; then those of a beam without children. */
function bodiesOf(parents: Int32Array, numBefore: number): Int32Array {
  const bodies = new Int32Array(parents.length).fill(NONE);
  const taken = new Uint8Array(numBefore);
  const take = (child: number, beam: number) => {
    if (bodies[child] !== NONE || beam >= numBefore || taken[beam] === 1) return;
    bodies[child] = beam;
    taken[beam] = 1;
  };
  for (let child = 0; child < parents.length; child++) if (parents[child] === child) take(child, child);
  for (let child = 0; child < parents.length; child++) take(child, parents[child]);
  // Of the pages that nobody continues a child takes its own first, so that its indices stay.
  for (let child = 0; child < parents.length; child++) take(child, child);
  let free = 0;
  for (let child = 0; child < parents.length; child++) {
    while (free < numBefore && taken[free] === 1) free++;
    take(child, free);
  }
  return bodies;
}
