import type { PromptRequest, TaskCounts } from '../scheduler/generation-task.ts';

/** A prompt whose most likely continuations are searched for. */
export interface BeamRequest extends PromptRequest {
  /** Continuations side by side, and answers at most. >= 1 */
  beamWidth: number;
  /** Tokens of an answer at most, >= 1. */
  maxNewTokens: number;
  /** An answer ends after one of these. Default none. */
  stopTokens?: readonly number[];
  /** Answers are compared by `logProbability / length ** lengthPenalty`. Default 1: by the mean. */
  lengthPenalty?: number;
}

export interface BeamAnswer {
  /** The stop token included. */
  readonly tokens: readonly number[];
  /** Natural logarithm of the probability of all of them together. */
  readonly logProbability: number;
  readonly finishReason: 'length' | 'stop';
}

/** The answers of a beam search, best first, and what they cost. */
export interface BeamResult extends TaskCounts {
  readonly answers: readonly BeamAnswer[];
}
