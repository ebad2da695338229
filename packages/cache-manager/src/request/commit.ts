import { StateError } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import type { TokenSeq } from '../tree/token-seq.ts';
import { forEachPage, releasePages } from './block-pages.ts';
import { letGoPublished } from './let-go.ts';
import { ensureBlock } from './own-path.ts';
import { markUses } from './page-uses.ts';
import { publishBlocks, publishOrShare, publishTail, restorePath } from './publish.ts';
import { findQuietReach } from './quiet-step.ts';
import type { RequestState } from './request-state.ts';
import { raiseHistory } from './resize.ts';
import { dropScratch, hasScratch } from './scratch.ts';

/** How a commit ends. */
export interface CommitOptions {
  /** The request writes no more: its partial tail and its state move into the tree. */
  end?: boolean;
  /**
   * `true` promises that the state is the one after exactly the new count; `false` leaves out the state snapshot and the
   * copy of the partial tail (decode steps). Left out, a snapshot is taken unless the history is beyond the new count.
   */
  snapshot?: boolean;
}

/**
 * Takes written tokens in and publishes what they fill.
 *
 * @throws {StateError} in the wrong state or when the tokens exceed the capacity, {TokenError} on bad tokens; nothing has
 *   changed then. Lack of pages never throws: a snapshot that finds no slot is counted and left out
 */
export function commit(state: RequestState, tokens: TokenSeq, options: CommitOptions): void {
  state.manager.checkNotAsking('commit');
  checkCommit(state, tokens.length);
  if (tokens.length === 0) {
    if (options.end) endWithoutTokens(state);
    return;
  }
  const { config } = state.manager;
  const before = state.committed;
  const after = before + tokens.length;
  state.askSnapshotPriority(after);
  state.tokens.append(tokens);
  state.takeSnapshotPriority();
  const stateIsThere = options.snapshot === true || state.history <= after;
  if (state.history < after) raiseHistory(state, after);

  restorePath(state, after);
  if (!state.hasCommitted) publishRebuilt(state);
  const firstNew = Math.floor(before / config.tokensPerBlock);
  const fullBlocks = Math.floor(after / config.tokensPerBlock);
  publishBlocks(state, firstNew, fullBlocks);
  state.committed = after;
  state.hasCommitted = true;

  if (options.end) {
    publishTail(state, 'move', { tail: true, state: stateIsThere });
    state.mayCommit = false;
    state.ended = true;
  } else if (config.commitMinSnapshot && options.snapshot !== false) {
    publishTail(state, 'copy', { tail: true, state: stateIsThere });
  }
  for (const group of state.groups) letGoPublished(state, group);
  findQuietReach(state);
}

/** Publishes the tail by copy and commits no more; the request may go on computing. Idempotent. */
export function stopCommitting(state: RequestState): void {
  state.manager.checkNotAsking('stopCommitting');
  if (state.status === 'closed') throw new StateError('stop-closed', 'stopCommitting: the request is closed');
  // What a suspended request writes again is copied when it resumes: by then it is clear whether anybody else has it.
  finish(state, state.status === 'suspended' ? 'move' : 'copy');
}

/** Publishes the tail by moving pages, then gives everything back. Idempotent. */
export function close(state: RequestState): void {
  if (state.status === 'closed') return;
  state.manager.checkNotAsking('close');
  finish(state, 'move');
  for (const group of state.groups) {
    dropScratch(state, group);
    group.hidePages();
  }
  markUses(state);
  releasePages(state);
  state.tokens.clear();
  state.status = 'closed';
  state.manager.open.delete(state);
}

/** Takes an active request off: its pages stay held, its scratch goes, its indices read -1. */
export function suspend(state: RequestState): void {
  state.manager.checkNotAsking('suspend');
  if (state.status !== 'active')
    throw new StateError(
      `suspend-${state.status}`,
      `suspend: the request is ${state.status}; only an active one can be suspended`,
    );
  takeOffDevice(state);
  state.manager.recorder.suspended();
}

/** The same, whoever wants it. */
export function takeOffDevice(state: RequestState): void {
  const { storage } = state.manager;
  for (const group of state.groups) {
    dropScratch(state, group);
    group.hidePages();
  }
  // The first blocks are the first to leave: they are of use without the last ones, should the device be lost.
  forEachPage(state, (page) => storage.unlock(page));
  state.status = 'suspended';
}

function checkCommit(state: RequestState, count: number): void {
  if (state.status !== 'active')
    throw new StateError(`commit-${state.status}`, `commit: the request is ${state.status}; resume it first`);
  if (state.beamWidth > 1) {
    throw new StateError(
      'several-beams',
      `commit: the request carries ${state.beamWidth} beams, which may have written different tokens; keepBeam(index) first`,
    );
  }
  if (count > 0 && !state.mayCommit)
    throw new StateError('commit-stopped', 'commit: committing was stopped; open another request to publish more');
  const after = state.committed + count;
  if (after > state.capacity) {
    throw new StateError(
      'commit-beyond-capacity',
      `commit: ${count} tokens after ${state.committed} exceed the capacity ${state.capacity}; resize first`,
    );
  }
  const rewind = state.manager.config.swaScratchReuse?.maxRewindLen ?? 0;
  if (count > 0 && Math.max(state.history, after) < state.capacity - rewind && hasScratch(state)) {
    throw new StateError(
      'scratch-in-use',
      `commit: history would end at ${Math.max(state.history, after)}, but blocks up to token ${state.capacity - rewind} were scratch in this step; commit the whole step`,
    );
  }
}

function endWithoutTokens(state: RequestState): void {
  finish(state, 'move');
  state.ended = true;
}

/** The last publication of a request, if it committed anything since its match and was not stopped before. */
function finish(state: RequestState, how: 'copy' | 'move'): void {
  if (!state.mayCommit) return;
  if (state.hasCommitted) {
    restorePath(state, state.committed);
    const stateIsThere = state.capacity === state.history && state.history === state.committed;
    publishTail(state, how, { tail: true, state: stateIsThere });
  }
  state.mayCommit = false;
  for (const group of state.groups) letGoPublished(state, group);
}

/** The first commit publishes what rebuilt groups recomputed of the match. */
function publishRebuilt(state: RequestState): void {
  const fullBlocks = Math.floor(state.matched / state.manager.config.tokensPerBlock);
  for (const group of state.groups) {
    if (!group.rebuilt || !group.isAttention) continue;
    for (let ordinal = 0; ordinal < fullBlocks; ordinal++) {
      if (group.page(ordinal) !== NONE) publishOrShare(state, group, ordinal, ensureBlock(state, ordinal));
    }
  }
}
