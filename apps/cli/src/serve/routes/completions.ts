import type { FastifyInstance } from 'fastify';
import { type Answering, answerOver } from '../answering.ts';
import { tenantOf } from '../http/tenant.ts';
import { checkedTokens, promptEncoder } from '../model/prompt-encoder.ts';
import { completionFormat } from '../reply/completion-format.ts';
import { type Prompt, readCompletionRequest } from '../request/completion-request.ts';

/** `POST /v1/completions`: goes on behind a text. */
export function completions(app: FastifyInstance, serving: Answering): void {
  const { model } = serving;
  const { tokenizer, description } = model.engineModel;
  const encode = promptEncoder(model);
  app.post('/v1/completions', async (request, reply) => {
    const { prompts, echo, order } = readCompletionRequest(request.body as Record<string, unknown>, description.vocabSize);
    const echoOf = (choice: number) => {
      const prompt = prompts[Math.floor(choice / order.numAnswers)];
      return typeof prompt === 'string' ? prompt : tokenizer.decode(prompt);
    };
    const format = completionFormat({
      tokenizer,
      logprobs: order.numTopTokens !== null,
      prefixOf: echo ? echoOf : () => '',
    });
    const tokensOf = (prompt: Prompt) => (typeof prompt === 'string' ? encode(prompt) : checkedTokens(model, prompt, 'prompt'));
    const asked = {
      order,
      numPrompts: prompts.length,
      encode: () => prompts.map((prompt) => ({ tokens: tokensOf(prompt), turnBorders: [] })),
      stops: [],
      tenant: tenantOf(request),
    };
    await answerOver(reply, serving, asked, format);
    return reply;
  });
}
