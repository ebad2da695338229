import type { TextTokenizer } from '@bufferwise/hybrid-engine';
import type { SpokenToken } from '../answer/answer-text.ts';
import type { AnswerFormat } from './answer-format.ts';
import { finite, readableToken } from './token-text.ts';

export interface ChatFormatOptions {
  readonly tokenizer: TextTokenizer;
  /** Whether probabilities are told. */
  readonly logprobs: boolean;
}

/** How `/v1/chat/completions` words its answers. */
export function chatFormat({ tokenizer, logprobs }: ChatFormatOptions): AnswerFormat {
  const tell = (tokens: readonly SpokenToken[]) =>
    logprobs ? { content: tokens.map((token) => entryOf(tokenizer, token)), refusal: null } : null;
  return {
    object: 'chat.completion',
    chunkObject: 'chat.completion.chunk',
    operation: 'chat',
    head: ({ uuid, created, model }) => ({ id: `chatcmpl-${uuid}`, created, model }),
    choice: (index, { text, tokens }, finishReason) => ({
      index,
      message: { role: 'assistant', content: text, refusal: null },
      logprobs: tell(tokens),
      finish_reason: finishReason,
    }),
    opening: (index) => ({ index, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }),
    delta: (index, { text, tokens }) => ({ index, delta: { content: text }, logprobs: tell(tokens), finish_reason: null }),
    closing: (index, finishReason) => ({ index, delta: {}, logprobs: null, finish_reason: finishReason }),
  };
}

function entryOf(tokenizer: TextTokenizer, { token, logProbability, top }: SpokenToken): object {
  return {
    ...readableToken(tokenizer, token),
    logprob: finite(logProbability),
    top_logprobs: top.map((each) => ({ ...readableToken(tokenizer, each.token), logprob: finite(each.logProbability) })),
  };
}
