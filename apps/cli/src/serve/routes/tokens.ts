import type { FastifyInstance } from 'fastify';
import * as v from 'valibot';
import { chatPrompt } from '../chat/chat-prompt.ts';
import { badField } from '../http/api-error.ts';
import { checkedTokens, promptEncoder } from '../model/prompt-encoder.ts';
import type { ServedModel } from '../model/served-model.ts';
import { optional, wholeNumber } from '../request/answer-fields.ts';
import { messagesSchema, toMessages } from '../request/chat-request.ts';
import { readRequest } from '../request/read-request.ts';

const tokenizeSchema = v.object({
  prompt: optional(v.string('must be a text')),
  messages: optional(messagesSchema),
  add_special_tokens: optional(v.boolean('must be true or false')),
});

const detokenizeSchema = v.object({
  tokens: v.array(wholeNumber(0, 2 ** 32 - 1), 'must be a list of tokens'),
});

/** `POST /tokenize` and `/detokenize`: what a text or a conversation is in tokens, and back. */
export function tokens(app: FastifyInstance, model: ServedModel, contextLength: number): void {
  const { tokenizer } = model.engineModel;
  const encode = promptEncoder(model);
  app.post('/tokenize', async ({ body }) => {
    const { prompt, messages, add_special_tokens: addsStart } = readRequest(tokenizeSchema, body);
    if ((prompt === null) === (messages === null))
      throw badField('prompt', 'or messages must be there, and not both', 'missing_field');
    const ids =
      prompt !== null
        ? (addsStart === false ? tokenizer.encode : encode).call(tokenizer, prompt)
        : chatPrompt(encode, model.chatTemplate, toMessages(messages ?? []), 0).tokens;
    return { count: ids.length, max_model_len: contextLength, tokens: [...ids] };
  });
  app.post('/detokenize', async ({ body }) => {
    const { tokens: ids } = readRequest(detokenizeSchema, body);
    return { prompt: tokenizer.decode(checkedTokens(model, ids, 'tokens')) };
  });
}
