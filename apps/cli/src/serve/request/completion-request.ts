import * as v from 'valibot';
import type { AnswerOrder } from '../answer/answer-order.ts';
import { badField } from '../http/api-error.ts';
import { answerFields, optional, orderOf, wholeNumber } from './answer-fields.ts';
import { readRequest, refuseUnsupported } from './read-request.ts';

/** One prompt, as a text or as tokens. */
export type Prompt = string | readonly number[];

export interface CompletionRequest {
  /** At least one. */
  readonly prompts: readonly Prompt[];
  readonly echo: boolean;
  readonly order: AnswerOrder;
}

const MAX_PROMPTS = 128;
/** The most that OpenAI's interface has here. */
const MAX_LOGPROBS = 5;
const DEFAULT_MAX_TOKENS = 16;

const tokens = v.array(wholeNumber(0, 2 ** 32 - 1));
const promptSchema = v.union(
  [v.string(), tokens, v.pipe(v.array(v.union([v.string(), tokens])), v.maxLength(MAX_PROMPTS))],
  `must be a text, a list of tokens, or a list of at most ${MAX_PROMPTS} of these`,
);

const schema = v.object({
  ...answerFields,
  prompt: promptSchema,
  logprobs: optional(wholeNumber(0, MAX_LOGPROBS)),
  echo: optional(v.boolean('must be true or false')),
});

/**
 * What `POST /v1/completions` is asked.
 *
 * @throws {ApiError} 400
 */
export function readCompletionRequest(body: Readonly<Record<string, unknown>>, vocabSize: number): CompletionRequest {
  refuseUnsupported(body, { suffix: [''], best_of: [1, body.n] });
  const fields = readRequest(schema, body);
  const echo = fields.echo ?? false;
  if (echo && fields.logprobs !== null)
    throw badField('logprobs', 'of the prompt are not known to this server; leave out echo', 'unsupported_parameter');
  const order = orderOf(fields, fields.logprobs, vocabSize);
  return { prompts: listOf(fields.prompt), echo, order: { ...order, maxTokens: order.maxTokens ?? DEFAULT_MAX_TOKENS } };
}

function listOf(prompt: v.InferOutput<typeof promptSchema>): readonly Prompt[] {
  if (typeof prompt === 'string') return [prompt];
  if (prompt.length === 0) throw badField('prompt', 'has nothing in it', 'invalid_prompt');
  return typeof prompt[0] === 'number' ? [prompt as number[]] : (prompt as Prompt[]);
}
