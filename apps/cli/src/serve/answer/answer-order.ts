import type { SamplingOptions } from '@bufferwise/hybrid-engine';
import type { LogitEditOptions } from './logit-edits.ts';

/** How prompts are to be answered, whichever route asked. */
export interface AnswerOrder {
  /** Answers to each prompt, at least 1. */
  readonly numAnswers: number;
  /** Tokens of an answer at most; null for as many as the server gives by itself. */
  readonly maxTokens: number | null;
  readonly sampling: SamplingOptions;
  /** An answer ends before one of these. */
  readonly stops: readonly string[];
  /** Whether an answer goes on behind the model's own end. */
  readonly ignoreEnd: boolean;
  /** How many of the most likely tokens are told in each place; null for no probabilities at all. */
  readonly numTopTokens: number | null;
  readonly edits: LogitEditOptions;
  /** Of requests that wait those with a larger number go first. */
  readonly priority: number;
  /** Keeps a request's prompts apart from others of the same key. */
  readonly cacheSalt: string | null;
  /** The model that was asked for; null for the one there is. */
  readonly model: string | null;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}
