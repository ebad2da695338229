import { divUp } from '@bufferwise/core-policy';
import type { GroupState } from './group-state.ts';
import type { RequestState } from './request-state.ts';
import { scratchBlocksBegin, scratchBlocksEnd } from './scratch.ts';

/** New blocks that get a page are at most so many runs: sinks, then the window before scratch, then behind it. */
export const NUM_RUNS = 3;

/**
 * Which blocks a resize adds, drops and turns into scratch, worked out before anything changes.
 *
 * A manager has one plan, filled anew by every resize that leaves its block, so that a step makes no garbage.
 */
export class ResizePlan {
  oldBlocks = 0;
  newBlocks = 0;
  capacity = 0;
  history = 0;
  readonly #scratchBegin: Int32Array;
  readonly #scratchEnd: Int32Array;
  /** Begin and end of each run: entry `(group * NUM_RUNS + run) * 2`, then the next. */
  readonly #runs: Int32Array;

  constructor(numGroups: number) {
    this.#scratchBegin = new Int32Array(numGroups);
    this.#scratchEnd = new Int32Array(numGroups);
    this.#runs = new Int32Array(numGroups * NUM_RUNS * 2);
  }

  prepare(state: RequestState, capacity: number, history: number): void {
    this.oldBlocks = state.numBlocks;
    this.newBlocks = divUp(capacity, state.manager.config.tokensPerBlock);
    this.capacity = capacity;
    this.history = history;
    for (const group of state.groups) if (group.isAttention) this.#prepareGroup(state, group);
  }

  /** First block of the step's scratch. */
  scratchBegin(group: GroupState): number {
    return this.#scratchBegin[group.rules.id];
  }

  /** End of the scratch as far as it covers blocks that were there before; not above `scratchBegin` when it covers none. */
  oldScratchEnd(group: GroupState): number {
    return Math.min(this.oldBlocks, this.#scratchEnd[group.rules.id]);
  }

  runBegin(group: GroupState, run: number): number {
    return this.#runs[(group.rules.id * NUM_RUNS + run) * 2];
  }

  runEnd(group: GroupState, run: number): number {
    return this.#runs[(group.rules.id * NUM_RUNS + run) * 2 + 1];
  }

  /** New blocks of a group that get a page of their own. */
  numNewPages(group: GroupState): number {
    let count = 0;
    for (let run = 0; run < NUM_RUNS; run++) count += this.runEnd(group, run) - this.runBegin(group, run);
    return count;
  }

  #prepareGroup(state: RequestState, group: GroupState): void {
    const { rules } = group;
    const scratchBegin = scratchBlocksBegin(state, group, this.history, this.capacity);
    const scratchEnd = scratchBlocksEnd(state, group, this.history, this.capacity);
    this.#scratchBegin[rules.id] = scratchBegin;
    this.#scratchEnd[rules.id] = scratchEnd;
    const kept = rules.keptAt(this.history);
    const sinkEnd = rules.staleBegin(kept);
    const windowBegin = Math.max(sinkEnd, rules.staleEnd(kept));
    // Scratch lies behind history, so behind the beginning of the window.
    const hasScratch = scratchBegin < scratchEnd;
    this.#setRun(rules.id, 0, 0, sinkEnd);
    this.#setRun(rules.id, 1, windowBegin, hasScratch ? scratchBegin : this.newBlocks);
    this.#setRun(rules.id, 2, hasScratch ? scratchEnd : this.newBlocks, this.newBlocks);
  }

  /** Keeps the new blocks of [begin, end). */
  #setRun(group: number, run: number, begin: number, end: number): void {
    const from = Math.max(begin, this.oldBlocks);
    const at = (group * NUM_RUNS + run) * 2;
    this.#runs[at] = from;
    this.#runs[at + 1] = Math.max(from, Math.min(end, this.newBlocks));
  }
}
