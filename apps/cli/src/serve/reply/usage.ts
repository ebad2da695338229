import type { PromptOutcome } from '../answer/answer-prompt.ts';

/** What answers took, as OpenAI's interface has it: each prompt counts once, however many answers it got. */
export function usageOf(outcomes: readonly PromptOutcome[]): object {
  const sum = (count: (outcome: PromptOutcome) => number) => outcomes.reduce((total, each) => total + count(each), 0);
  const promptTokens = sum((outcome) => outcome.promptTokens);
  const completionTokens = sum((outcome) => outcome.completionTokens);
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: sum((outcome) => outcome.cachedTokens) },
  };
}
