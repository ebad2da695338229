import { type LayerGroupId, StateError } from '@bufferwise/core-policy';
import type { PageSource, ScratchDesc } from '@bufferwise/scratch-allocator';
import { NONE } from './columns.ts';
import { DISPOSE } from './dispose.ts';
import { checkBeam, continueBeams, parentsForWidth } from './request/beams.ts';
import { type CommitOptions, close, commit, stopCommitting, suspend } from './request/commit.ts';
import { type DropPlan, planCommittedBlockDrop } from './request/drop-plan.ts';
import { type ForkOptions, fork } from './request/fork.ts';
import type { GroupState } from './request/group-state.ts';
import type { MatchDepths } from './request/match.ts';
import type { MatchLimit } from './request/match-limits.ts';
import { prefetch } from './request/prefetch.ts';
import { commitQuietly, resizeQuietly } from './request/quiet-step.ts';
import type { RequestState } from './request/request-state.ts';
import { resize } from './request/resize.ts';
import { resume } from './request/resume.ts';
import { type GroupReuseStatus, reuseStatus } from './request/reuse-status.ts';
import type { ResumeOptions } from './request/selection.ts';
import { type SnapshotPointsOptions, snapshotPoints } from './request/snapshot-points.ts';
import { takePublished } from './request/take-published.ts';
import type { TokenSeq } from './tree/token-seq.ts';

/**
 * One request's memory: what it reuses, what it writes, what it publishes. Opened by `KvCacheManager.createKvCache`.
 *
 * It begins suspended and moves suspended -> active <-> suspended -> closed. Always
 * `numCommittedTokens <= historyLength <= capacity`, in tokens. Whatever throws has changed nothing.
 */
export class KvCache {
  readonly #state: RequestState;
  readonly #check: () => void;
  /** Null until somebody asks. */
  #reuseStatus: readonly GroupReuseStatus[] | null = null;
  #beginnings = 0;

  /** @internal Requests are opened by their manager. */
  constructor(state: RequestState, check: () => void) {
    this.#state = state;
    this.#check = check;
  }

  /** The caller's name for the request, if it gave one. */
  get id(): number | undefined {
    return this.#state.id;
  }

  get status(): 'suspended' | 'active' | 'closed' {
    return this.#state.status;
  }

  get numCommittedTokens(): number {
    return this.#state.committed;
  }

  /** Tokens written. */
  get historyLength(): number {
    return this.#state.history;
  }

  /** Tokens there is room for. */
  get capacity(): number {
    return this.#state.capacity;
  }

  /**
   * Tokens behind the history that were written before pages of the request were lost, with a device or in a colder tier. They
   * are to be computed again, from `historyLength` on. 0 when nothing was lost, or all of it was made up for.
   */
  get lostTokens(): number {
    return Math.max(0, this.#state.reached - this.#state.history);
  }

  /** What every group could supply when the request was opened, or began again after a loss; index = group id. */
  get reuseStatus(): readonly GroupReuseStatus[] {
    if (this.#reuseStatus === null || this.#beginnings !== this.#state.beginnings) {
      this.#reuseStatus = reuseStatus(this.#state);
      this.#beginnings = this.#state.beginnings;
    }
    return this.#reuseStatus;
  }

  /** Why the match is as long as it is. */
  get matchDepths(): Readonly<MatchDepths> {
    return this.#state.depths;
  }

  /**
   * What shortened the match of the prompt, the mildest first, with the group that lacked something and how far it alone would have
   * allowed. Empty when all tokens were found. As of the opening, or of the last loss of pages.
   */
  get matchLimits(): readonly MatchLimit[] {
    return this.#state.limits;
  }

  /**
   * The token counts behind `numCommittedTokens` at which a commit with `snapshot: true` is worth it, ascending: end the chunks of the
   * prompt there. They are where the path was known and could not be used, at turn borders, on a grid, before the last token of the prompt
   * and at its end. Empty without recurrent state and windows: then a match can end anywhere.
   *
   * @throws {StateError} `invalid-snapshot-points`
   */
  snapshotPoints(options: SnapshotPointsOptions = {}): number[] {
    return snapshotPoints(this.#state, options);
  }

  /**
   * Sequences that the request carries, its beams: 1 at first. They share what was written before they parted, and each goes on
   * in pages of its own.
   *
   * Setting it does what `forkBeams` does, and throws {StateError} `no-room-to-fork` where that returns false.
   */
  get beamWidth(): number {
    return this.#state.beamWidth;
  }

  set beamWidth(width: number) {
    if (this.forkBeams(width)) return;
    throw new StateError(
      'no-room-to-fork',
      `beamWidth: there are not enough pages for ${width} beams now; forkBeams(${width}) says so without throwing`,
    );
  }

  /**
   * Takes the request onto the device: pages of required and selected groups as they are, fresh ones for the rest. The
   * choice is made at the first resume and stays. Pages in colder tiers are brought back, all or none.
   *
   * @returns false when there is not enough memory now. Nothing has changed then: every claim is still held, and the next
   *   try may choose anew
   * @throws {ReuseSelectionError} on a list that names a group it must not name; {StateError} unless suspended, or
   *   `device-lost`; {PagesLostError} once after pages of the request were lost: its lengths have changed
   */
  async resume(options: ResumeOptions = {}): Promise<boolean> {
    try {
      return await resume(this.#state, options);
    } finally {
      // Also when it is told of a loss: what was lost is news to others.
      this.#check();
    }
  }

  /**
   * Brings what the request holds in colder tiers into a tier ahead of time; 0 is the device. It is held there as before, so it
   * may leave again.
   *
   * @returns false when the tier has no room for all of it now; every page is where it was then
   * @throws {StateError} `unknown-tier`, `device-lost`, or unless suspended; {PagesLostError} as `resume`
   */
  async prefetch(tier: number): Promise<boolean> {
    try {
      return await prefetch(this.#state, tier);
    } finally {
      this.#check();
    }
  }

  /**
   * Makes room before a step.
   *
   * @param capacity      tokens there must be room for, or null to leave it
   * @param historyLength tokens written, never lower than before. Default: as it is
   * @returns false when there are not enough pages; nothing has changed then
   * @throws {StateError} on lengths that do not fit, or unless active
   */
  resize(capacity: number | null, historyLength?: number): boolean {
    const state = this.#state;
    const toCapacity = capacity ?? state.capacity;
    const toHistory = historyLength ?? state.history;
    if (resizeQuietly(state, toCapacity, toHistory)) {
      state.manager.debugCheck?.();
      return true;
    }
    const resized = resize(state, toCapacity, toHistory);
    this.#check();
    return resized;
  }

  /**
   * Takes written tokens in: full blocks are published, and with minimal snapshots a copy of the partial tail and of the
   * recurrent state. An empty list does nothing; with `end` it stops and ends.
   *
   * @throws {StateError} when the tokens exceed the capacity, after `stopCommitting`, with several beams, or unless active;
   *   {TokenError} on anything that is no token
   */
  commit(tokens: TokenSeq, options: CommitOptions = {}): void {
    const state = this.#state;
    if (commitQuietly(state, tokens, options)) {
      state.manager.debugCheck?.();
      return;
    }
    commit(state, tokens, options);
    this.#check();
  }

  /**
   * For a request whose pages are filled from outside, as by a move from another worker: takes what others have published of the tokens behind
   * the committed ones, of each group by itself, however long the match of all of them was. Call it after `resize(n, n)` to the end of the
   * tokens; fill what the answer says is lacking, and private pages; then commit the tokens.
   *
   * A group whose answer is complete is whole at the history. Of the others `coverage` says which blocks are. Pages that no token behind the
   * history reads, and that nobody has published, are let go: nothing comes for them.
   *
   * @returns index = group id
   * @throws {StateError} unless active with one beam, or `take-lengths`; {TokenError} on anything that is no token
   */
  takePublished(tokens: TokenSeq): readonly GroupReuseStatus[] {
    const status = takePublished(this.#state, tokens);
    this.#check();
    return status;
  }

  /**
   * Carries `beamWidth` beams from now on: further ones continue from beam 0, at the history. Full blocks stay shared; the partial
   * last block and recurrent state are copied, private pages too. A smaller width keeps the first beams.
   *
   * Tell what has been written first (`resize(null, written)`, or a commit): blocks behind the history are room, and not copied.
   *
   * @returns false when there are not enough pages; nothing has changed then
   * @throws {StateError} unless active, on a width that is none, after a commit with `end`, or in a step with scratch
   */
  forkBeams(beamWidth: number): boolean {
    return this.#continueBeams(parentsForWidth(this.#state, beamWidth), 'forkBeams');
  }

  /**
   * Lets beam i continue from beam `parents[i]`, as a beam search chooses. Beams that continue from one part here as in `forkBeams`; a
   * beam that nobody continues from ends. The request carries `parents.length` beams afterwards.
   *
   * @returns false when there are not enough pages, which can only be with more beams than before; nothing has changed then
   * @throws {StateError} as `forkBeams`, and `unknown-beam` on a parent that does not exist
   */
  reorderBeams(parents: ArrayLike<number>): boolean {
    return this.#continueBeams(parents, 'reorderBeams');
  }

  /** Ends all beams but one, which becomes the request: it may commit again. Throws {StateError} as `forkBeams` and on a beam that does not exist. */
  keepBeam(beam: number): void {
    this.#continueBeams([beam], 'keepBeam');
  }

  /**
   * Opens a request that continues from the same history with the same room, for parallel sampling. It is active; from here on the two
   * know nothing of each other, and each commits and closes by itself. Full blocks are shared, the partial last block, private
   * pages and recurrent state are copied. It may publish what this one may, with the same priorities.
   *
   * Tell what has been written first, as for `forkBeams`. What was written and not committed yet was written for the same tokens, so
   * both must commit the same for it.
   *
   * @returns null when there are not enough pages; nothing has changed then
   * @throws {StateError} unless active, after a commit with `end`, with several beams, or in a step with scratch
   */
  fork(options: ForkOptions = {}): KvCache | null {
    const forked = fork(this.#state, options);
    this.#check();
    return forked === null ? null : new KvCache(forked, this.#check);
  }

  /** Publishes the rest by copy and commits no more; the request may go on computing. Does nothing the second time. */
  stopCommitting(): void {
    stopCommitting(this.#state);
    this.#check();
  }

  /**
   * Plans to drop what only a request that continues exactly at the committed count could use: windows and the snapshot there. For
   * whoever knows that nobody will, because a longer conversation has taken over.
   *
   * @returns null when nothing was committed, or when a match does not reach exactly the committed count any more
   * @throws {StateError} `plan-committing` before `stopCommitting`, `plan-closed` after `close`
   */
  planCommittedBlockDrop(): DropPlan | null {
    return planCommittedBlockDrop(this.#state);
  }

  /** Takes the request off the device. Its pages stay held; all indices read -1. Throws {StateError} unless active. */
  suspend(): void {
    suspend(this.#state);
    this.#check();
  }

  /** Publishes the rest and gives everything back. Does nothing the second time. */
  close(): void {
    close(this.#state);
    this.#check();
  }

  [DISPOSE](): void {
    this.close();
  }

  /**
   * Base page indices of an attention group, one a block; -1 where there is no page: out of the window, scratch, or the
   * request is not active. A live view: read it when a step is put together, ask again after a `resize`.
   *
   * @throws {StateError} `not-attention` for a group of recurrent state, `unknown-group` for none, `unknown-beam`
   */
  basePageIndices(groupId: LayerGroupId, beam = 0): Int32Array {
    const group = this.#group(groupId);
    checkBeam(this.#state, beam, 'basePageIndices');
    if (!group.isAttention)
      throw new StateError('not-attention', `group ${groupId} is recurrent state; ask ssmBlockBaseIndex(${groupId})`);
    return group.indices(this.#state.numBlocks, beam);
  }

  /**
   * Base page index of a beam's recurrent state, -1 while the request is not active.
   *
   * @throws {StateError} `not-state` for an attention group, `unknown-group` for none, `unknown-beam`
   */
  ssmBlockBaseIndex(groupId: LayerGroupId, beam = 0): number {
    const group = this.#group(groupId);
    checkBeam(this.#state, beam, 'ssmBlockBaseIndex');
    if (group.isAttention) throw new StateError('not-state', `group ${groupId} is attention; ask basePageIndices(${groupId})`);
    const { statePage } = group.row(beam);
    return this.#state.status !== 'active' || statePage === NONE ? NONE : this.#state.manager.storage.pages.slot[statePage];
  }

  /**
   * The tables of one beam, as the `StepTable` of scratch-allocator takes them: live, for as long as the request carries the beam.
   *
   * @throws {StateError} `unknown-beam`, also when it is read once the beam is gone
   */
  beam(beam: number): PageSource {
    checkBeam(this.#state, beam, 'beam');
    return {
      basePageIndices: (groupId) => this.basePageIndices(groupId, beam),
      ssmBlockBaseIndex: (groupId) => this.ssmBlockBaseIndex(groupId, beam),
      scratch: (groupId) => this.scratch(groupId),
    };
  }

  /** The scratch blocks of the present step and their slots; null when the group has none, as with several beams. Stale after the next `resize`. */
  scratch(groupId: LayerGroupId): ScratchDesc | null {
    return this.#group(groupId).scratch;
  }

  #continueBeams(parents: ArrayLike<number>, call: string): boolean {
    const done = continueBeams(this.#state, parents, call);
    this.#check();
    return done;
  }

  #group(groupId: number): GroupState {
    const group = this.#state.groups[groupId];
    if (group === undefined)
      throw new StateError(
        'unknown-group',
        `there is no group ${groupId}; group ids run from 0 to ${this.#state.groups.length - 1}`,
      );
    return group;
  }
}
