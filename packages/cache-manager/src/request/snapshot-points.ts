import { StateError } from '@bufferwise/core-policy';
import type { RequestState } from './request-state.ts';

/** What the caller knows of a prompt that the manager does not. All in tokens. */
export interface SnapshotPointsOptions {
  /** Tokens of the prompt. Default: `expectedPromptLength`, or the length of `tokens`. */
  promptLength?: number;
  /** Where one turn ends and the next begins: later requests are likely to share exactly so much. */
  turnBorders?: readonly number[];
  /** Tokens from one snapshot to the next on a grid that all requests have in common, best those of a chunk. Left out: no grid. */
  every?: number;
  /** What others share of the path beyond the match is worth a snapshot from so many tokens on. Default: a block. */
  minGain?: number;
}

/**
 * The token counts behind what is committed at which a snapshot is worth having, ascending: where the chunks of a prompt should end.
 *
 * - where the path was known and could not be used, for want of a snapshot or a window: others will come this way again;
 * - at turn borders, and on the caller's grid;
 * - before the last token, so that the same prompt again computes one token, and at its end, for the next turn;
 * - where the last whole block before that ends, when there is optional attention, which can continue from nowhere else.
 */
export function snapshotPoints(state: RequestState, options: SnapshotPointsOptions): number[] {
  const { tokensPerBlock } = state.manager.config;
  const { promptLength = state.expectedPromptLength, turnBorders = [], every, minGain = tokensPerBlock } = options;
  checkCount('every', every, 1);
  checkCount('minGain', minGain, 0);
  checkCount('promptLength', promptLength === Number.POSITIVE_INFINITY ? undefined : promptLength, 0);
  for (const border of turnBorders) checkCount('turnBorders', border, 0);
  const groups = state.groups.map(({ rules }) => rules).filter(({ policy }) => policy !== 'private');
  const isWindow = (windowSize: number | null) => windowSize !== null;
  // Elsewhere matches can end anywhere, and nothing has to be kept for an end.
  if (!groups.some(({ kind, windowSize }) => kind === 'ssm' || isWindow(windowSize))) return [];
  const points = new Set(turnBorders);
  const { path, usable } = state.depths;
  if (path >= usable + minGain) points.add(path);
  if (Number.isFinite(promptLength)) {
    points.add(promptLength).add(promptLength - 1);
    if (groups.some(({ policy, kind }) => policy === 'optional' && kind === 'attention')) {
      points.add(Math.floor((promptLength - 1) / tokensPerBlock) * tokensPerBlock);
    }
    if (every !== undefined) {
      for (let end = (Math.floor(state.committed / every) + 1) * every; end < promptLength; end += every) points.add(end);
    }
  }
  return [...points].filter((end) => end > state.committed && end <= promptLength).sort((a, b) => a - b);
}

function checkCount(name: string, count: number | undefined, least: number): void {
  if (count === undefined || (Number.isSafeInteger(count) && count >= least)) return;
  throw new StateError(
    'invalid-snapshot-points',
    `snapshotPoints: ${name} has ${count}; it takes whole numbers of tokens from ${least}`,
  );
}
