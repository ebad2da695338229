import * as v from 'valibot';
import type { AnswerOrder } from '../answer/answer-order.ts';
import type { ChatMessage } from '../chat/chat-template.ts';
import { badField } from '../http/api-error.ts';
import { answerFields, MAX_TOP_TOKENS, optional, orderOf, wholeNumber } from './answer-fields.ts';
import { readRequest, refuseUnsupported } from './read-request.ts';

export interface ChatRequest {
  /** At least one. */
  readonly messages: readonly ChatMessage[];
  readonly order: AnswerOrder;
}

const MAX_MESSAGES = 10_000;

const content = v.union(
  [v.string(), v.array(v.object({ type: v.literal('text'), text: v.string() }))],
  'must be a text, or a list of parts of type text: this server takes nothing else',
);

const ROLES = ['system', 'developer', 'user', 'assistant'] as const;

export const messagesSchema = v.pipe(
  v.array(
    v.object(
      {
        role: v.picklist(ROLES, `must be one of ${ROLES.join(', ')}`),
        content,
        name: optional(v.string('must be a text')),
      },
      'must be an object',
    ),
    'must be a list of messages',
  ),
  v.minLength(1, 'must have at least one message'),
  v.maxLength(MAX_MESSAGES, `must have at most ${MAX_MESSAGES} messages`),
);

const schema = v.object({
  ...answerFields,
  messages: messagesSchema,
  max_completion_tokens: answerFields.max_tokens,
  logprobs: optional(v.boolean('must be true or false')),
  top_logprobs: optional(wholeNumber(0, MAX_TOP_TOKENS)),
});

/** Fields of OpenAI's that would change an answer, and what they may hold because that changes nothing. */
const UNSUPPORTED = {
  tools: [[]],
  tool_choice: ['none', 'auto'],
  functions: [[]],
  function_call: ['none', 'auto'],
  response_format: [{ type: 'text' }],
  modalities: [['text']],
  audio: [],
  prediction: [],
  reasoning_effort: ['none'],
  web_search_options: [],
};

/**
 * What `POST /v1/chat/completions` is asked.
 *
 * @throws {ApiError} 400
 */
export function readChatRequest(body: Readonly<Record<string, unknown>>, vocabSize: number): ChatRequest {
  refuseUnsupported(body, UNSUPPORTED);
  const fields = readRequest(schema, body);
  if (fields.top_logprobs !== null && fields.logprobs !== true)
    throw badField('top_logprobs', 'has no meaning without logprobs: true');
  const order = orderOf(fields, fields.logprobs === true ? (fields.top_logprobs ?? 0) : null, vocabSize);
  return {
    messages: toMessages(fields.messages),
    order: { ...order, maxTokens: fields.max_completion_tokens ?? fields.max_tokens },
  };
}

/** Messages with their text in one piece, and with the roles that templates know. */
export function toMessages(messages: v.InferOutput<typeof messagesSchema>): ChatMessage[] {
  return messages.map(({ role, content: parts, name }) => ({
    role: role === 'developer' ? 'system' : role,
    content: typeof parts === 'string' ? parts : parts.map(({ text }) => text).join(''),
    ...(name !== null && { name }),
  }));
}
