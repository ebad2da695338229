import type { TokenSeq } from '../tree/token-seq.ts';
import type { CommitOptions } from './commit.ts';
import type { RequestState } from './request-state.ts';

/**
 * How far a request can go before a step does more than change lengths. Most decode steps stay inside a block and move no
 * window; these need to know no more than this. In tokens, all inclusive; nothing is quiet while `capacityTo` is -1.
 */
export class QuietReach {
  capacityFrom = 0;
  capacityTo = -1;
  historyTo = -1;
  committedTo = -1;
}

/** Works out how far the steps to come are quiet, after one that was not. */
export function findQuietReach(state: RequestState): void {
  const { quiet, numBlocks, history, committed } = state;
  const { swaScratchReuse, tokensPerBlock } = state.manager.config;
  quiet.capacityFrom = (numBlocks - 1) * tokensPerBlock + 1;
  quiet.capacityTo = numBlocks * tokensPerBlock;
  quiet.historyTo = quiet.capacityTo;
  quiet.committedTo = (Math.floor(committed / tokensPerBlock) + 1) * tokensPerBlock - 1;
  for (const { rules, hiddenEnd, letGoEnd, scratchBegin, scratchEnd } of state.groups) {
    if (rules.windowSize === null) continue;
    // Scratch lies between the history and what the window has left behind at the end of the step.
    if (scratchBegin < scratchEnd || (swaScratchReuse !== null && rules.staleEnd(quiet.capacityTo) * tokensPerBlock > history))
      quiet.capacityTo = -1;
    const staleEnd = Math.max(Math.min(hiddenEnd, letGoEnd), rules.numSinkBlocks);
    quiet.historyTo = Math.min(quiet.historyTo, (staleEnd + 1) * tokensPerBlock + rules.windowSize - 2);
  }
}

/** Does a `resize` that only sets the lengths, and says whether it was one. Whatever is wrong with a call, it is none. No garbage. */
export function resizeQuietly(state: RequestState, capacity: number, history: number): boolean {
  const { quiet } = state;
  if (capacity < quiet.capacityFrom || capacity > quiet.capacityTo || history > quiet.historyTo) return false;
  if (history < state.history || history > capacity || (capacity | 0) !== capacity || (history | 0) !== history) return false;
  if (state.status !== 'active' || state.ended || state.manager.isAsking) return false;
  state.capacity = capacity;
  state.history = history;
  return true;
}

/**
 * Does a `commit` that completes no block and leaves no snapshot, and says whether it was one. Whatever is wrong with a call, it
 * is none.
 *
 * @throws {TokenError} on bad tokens; nothing has changed then
 */
export function commitQuietly(state: RequestState, tokens: TokenSeq, options: CommitOptions): boolean {
  const { quiet, manager } = state;
  const after = state.committed + tokens.length;
  const history = Math.max(after, state.history);
  if (after > quiet.committedTo || after > state.capacity || state.capacity > quiet.capacityTo || history > quiet.historyTo)
    return false;
  if (state.status !== 'active' || !state.mayCommit || !state.hasCommitted || state.beamWidth > 1) return false;
  if (options.end || (options.snapshot !== false && manager.config.commitMinSnapshot)) return false;
  if (state.hasPriority || state.seenLosses !== manager.tree.heldLosses || manager.isAsking) return false;
  state.tokens.append(tokens);
  state.committed = after;
  state.history = history;
  return true;
}
