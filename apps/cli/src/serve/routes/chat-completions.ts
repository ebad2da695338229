import type { FastifyInstance } from 'fastify';
import { type Answering, answerOver } from '../answering.ts';
import { chatPrompt } from '../chat/chat-prompt.ts';
import { tenantOf } from '../http/tenant.ts';
import { promptEncoder } from '../model/prompt-encoder.ts';
import { chatFormat } from '../reply/chat-format.ts';
import { readChatRequest } from '../request/chat-request.ts';

/** `POST /v1/chat/completions`: answers the last message of a conversation. */
export function chatCompletions(app: FastifyInstance, serving: Answering): void {
  const { model } = serving;
  const { tokenizer, description } = model.engineModel;
  const encode = promptEncoder(model);
  app.post('/v1/chat/completions', async (request, reply) => {
    const { messages, order } = readChatRequest(request.body as Record<string, unknown>, description.vocabSize);
    const asked = {
      order,
      numPrompts: 1,
      encode: () => [chatPrompt(encode, model.chatTemplate, messages, serving.contextLength)],
      stops: model.chatTemplate.stops,
      tenant: tenantOf(request),
    };
    await answerOver(reply, serving, asked, chatFormat({ tokenizer, logprobs: order.numTopTokens !== null }));
    return reply;
  });
}
