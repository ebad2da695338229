import type { ReuseScope } from '@bufferwise/cache-manager';
import type { LayerGroupId, ReusePolicy } from '@bufferwise/core-policy';
import type { OpenedReuse } from '../reuse/open-reuse.ts';
import type { SamplingOptions } from '../sampling/sampler.ts';

/** One prompt to be answered. */
export interface GenerationRequest {
  /** Token ids, at least one. */
  prompt: ArrayLike<number>;
  /** Tokens to generate, >= 1. */
  maxNewTokens: number;
  /** Default: greedy. */
  sampling?: SamplingOptions;
  /** Generation ends after one of these. Default none. */
  stopTokens?: readonly number[];
  /**
   * Token counts at which one turn of the prompt ends and the next begins; later requests find the recurrent state there.
   * Default none.
   */
  turnBorders?: readonly number[];
  /** Whether the prompt's beginning is looked up in the cache. Default true. */
  lookup?: boolean;
  /** Whether others may continue from what this request computes. Default true. */
  publish?: boolean;
  /** Of requests that wait for the same memory or the same step those with a larger number go first. Default 0. */
  priority?: number;
  /** Whether drafts are looked up in what was said before, where the engine speculates. Changes no token. Default true. */
  speculate?: boolean;
  /** The caller's name for the request, by which `manager.inspect()` shows it. */
  id?: number;
  /** Hears once what the request begins with, when it has its pages and before its first step. */
  onBegin?: (begun: RequestBeginning) => void;
  /** Namespace in which prefixes may match. */
  scope?: ReuseScope;
  /** Stops between two steps; what the request published stays. */
  signal?: AbortSignal;
  /**
   * Sees the logits `[vocabSize] f32` behind every choice, before it is made; may change them, and forbid tokens by minus infinity.
   * `answer` counts the answers of `generateSeveral`, from 0 on.
   */
  onLogits?: (logits: Float32Array, answer: number) => void;
  /** Is told what each answer has cost once it has ended, also when its reader left it or it failed. Must not throw. */
  onReport?: (report: GenerationReport, answer: number) => void;
}

/** One token of the answer. */
export interface GeneratedToken {
  token: number;
  /** Natural logarithm of its probability, before temperature and filters. */
  logProbability: number;
}

/** What one buffer group gave to a request. */
export interface GroupReuse {
  groupId: LayerGroupId;
  policy: ReusePolicy;
  /** Tokens whose pages of this group the request began with. */
  reusedTokens: number;
}

/** What a request begins with. */
export interface RequestBeginning {
  /** Tokens of the match. */
  reusedTokens: number;
  /** Index = group id. */
  groups: readonly GroupReuse[];
}

/** What a request cost and what it was spared, as counted while it ran. */
export interface GenerationReport {
  promptTokens: number;
  /** Tokens of the match. */
  reusedTokens: number;
  /** Tokens of the prompt that went through the model. */
  computedTokens: number;
  /** Tokens computed once more: to fill groups that were not reused, or because their pages were given up for others. */
  recomputedTokens: number;
  generatedTokens: number;
  /** Times that the request made way for others. */
  preemptions: number;
  /** Tokens that were guessed, and of these the ones that were right. */
  draftedTokens: number;
  acceptedDrafts: number;
  /** Index = group id. */
  groups: readonly GroupReuse[];
  /** Milliseconds from the call to the first token. */
  timeToFirstTokenMs: number;
  /** Milliseconds from the call to the last token. */
  totalMs: number;
  finishReason: 'length' | 'stop';
}

/** Tokens whose pages of each group a request began with. */
export function groupReuse({ cache, reused }: Pick<OpenedReuse, 'cache' | 'reused'>): GroupReuse[] {
  return cache.reuseStatus.map(({ groupId, policy, coverage }) => ({
    groupId,
    policy,
    reusedTokens: reused.has(groupId) ? coverage.reduce((sum, [begin, end]) => sum + end - begin, 0) : 0,
  }));
}
