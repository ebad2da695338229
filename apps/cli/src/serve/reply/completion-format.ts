import type { TextTokenizer } from '@bufferwise/hybrid-engine';
import type { SpokenToken } from '../answer/answer-text.ts';
import type { AnswerFormat } from './answer-format.ts';
import { finite, readableToken } from './token-text.ts';

export interface CompletionFormatOptions {
  readonly tokenizer: TextTokenizer;
  /** Whether probabilities are told. */
  readonly logprobs: boolean;
  /** What stands in front of each choice: its prompt, where that is echoed. */
  readonly prefixOf: (choice: number) => string;
}

/** How `/v1/completions` words its answers. */
export function completionFormat({ tokenizer, logprobs, prefixOf }: CompletionFormatOptions): AnswerFormat {
  const choice = (index: number, text: string, tokens: readonly SpokenToken[], finishReason: string | null) => ({
    index,
    text,
    logprobs: logprobs && tokens.length > 0 ? logprobsOf(tokenizer, tokens) : null,
    finish_reason: finishReason,
  });
  return {
    object: 'text_completion',
    chunkObject: 'text_completion',
    operation: 'text_completion',
    head: ({ uuid, created, model }) => ({ id: `cmpl-${uuid}`, created, model }),
    choice: (index, { text, tokens }, finishReason) => choice(index, prefixOf(index) + text, tokens, finishReason),
    opening: (index) => (prefixOf(index) === '' ? null : choice(index, prefixOf(index), [], null)),
    delta: (index, { text, tokens }) => choice(index, text, tokens, null),
    closing: (index, finishReason) => choice(index, '', [], finishReason),
  };
}

/** Lists with one entry a token. Of several tokens with one text the first counts: they are keys here. */
function logprobsOf(tokenizer: TextTokenizer, tokens: readonly SpokenToken[]): object {
  const textOf = (id: number) => readableToken(tokenizer, id).token;
  return {
    tokens: tokens.map(({ token }) => textOf(token)),
    token_logprobs: tokens.map(({ logProbability }) => finite(logProbability)),
    top_logprobs: tokens.map(({ top, token, logProbability }) => {
      const entries = [...top, { token, logProbability }].map(
        (each) => [textOf(each.token), finite(each.logProbability)] as const,
      );
      return Object.fromEntries(entries.reverse());
    }),
    text_offset: tokens.map(({ offset }) => offset),
  };
}
