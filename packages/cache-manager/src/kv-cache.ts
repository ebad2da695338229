import { type LayerGroupId, StateError } from '@bufferwise/core-policy';
import type { ScratchDesc } from '@bufferwise/scratch-allocator';
import { NONE } from './columns.ts';
import { DISPOSE } from './dispose.ts';
import { type CommitOptions, close, commit, stopCommitting, suspend } from './request/commit.ts';
import type { GroupState } from './request/group-state.ts';
import type { MatchDepths } from './request/match.ts';
import type { RequestState } from './request/request-state.ts';
import { resize } from './request/resize.ts';
import { resume } from './request/resume.ts';
import { type GroupReuseStatus, reuseStatus } from './request/reuse-status.ts';
import type { ResumeOptions } from './request/selection.ts';
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
  readonly #reuseStatus: readonly GroupReuseStatus[];

  /** @internal Requests are opened by their manager. */
  constructor(state: RequestState, check: () => void) {
    this.#state = state;
    this.#check = check;
    this.#reuseStatus = reuseStatus(state);
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

  /** What every group could supply when the request was opened; index = group id. */
  get reuseStatus(): readonly GroupReuseStatus[] {
    return this.#reuseStatus;
  }

  /** Why the match is as long as it is. */
  get matchDepths(): Readonly<MatchDepths> {
    return this.#state.depths;
  }

  /** Sequences that the request carries. */
  get beamWidth(): number {
    return 1;
  }

  /**
   * Takes the request onto the device: pages of required and selected groups as they are, fresh ones for the rest. The
   * choice is made at the first resume and stays.
   *
   * @returns false when there is not enough memory now. Nothing has changed then: every claim is still held, and the next
   *   try may choose anew
   * @throws {ReuseSelectionError} on a list that names a group it must not name; {StateError} unless suspended
   */
  async resume(options: ResumeOptions = {}): Promise<boolean> {
    const resumed = await resume(this.#state, options);
    this.#check();
    return resumed;
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
    const resized = resize(this.#state, capacity ?? this.#state.capacity, historyLength ?? this.#state.history);
    this.#check();
    return resized;
  }

  /**
   * Takes written tokens in: full blocks are published, and with minimal snapshots a copy of the partial tail and of the
   * recurrent state. An empty list does nothing; with `end` it stops and ends.
   *
   * @throws {StateError} when the tokens exceed the capacity, after `stopCommitting`, or unless active; {TokenError} on
   *   anything that is no token
   */
  commit(tokens: TokenSeq, options: CommitOptions = {}): void {
    commit(this.#state, tokens, options);
    this.#check();
  }

  /** Publishes the rest by copy and commits no more; the request may go on computing. Does nothing the second time. */
  stopCommitting(): void {
    stopCommitting(this.#state);
    this.#check();
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
   * @throws {StateError} `not-attention` for a group of recurrent state, `unknown-group` for none
   */
  basePageIndices(groupId: LayerGroupId): Int32Array {
    const group = this.#group(groupId);
    if (!group.isAttention)
      throw new StateError('not-attention', `group ${groupId} is recurrent state; ask ssmBlockBaseIndex(${groupId})`);
    return group.indices(this.#state.numBlocks);
  }

  /**
   * Base page index of the request's recurrent state, -1 while it is not active.
   *
   * @throws {StateError} `not-state` for an attention group, `unknown-group` for none
   */
  ssmBlockBaseIndex(groupId: LayerGroupId): number {
    const group = this.#group(groupId);
    if (group.isAttention) throw new StateError('not-state', `group ${groupId} is attention; ask basePageIndices(${groupId})`);
    if (this.#state.status !== 'active' || group.statePage === NONE) return NONE;
    return this.#state.manager.storage.pages.slot[group.statePage];
  }

  /** The scratch blocks of the present step and their slots; null when the group has none. Stale after the next `resize`. */
  scratch(groupId: LayerGroupId): ScratchDesc | null {
    return this.#group(groupId).scratch;
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
