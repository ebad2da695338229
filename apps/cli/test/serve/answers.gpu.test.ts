import type OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { startTestServer, type TestServer } from '../support/test-server.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

let served: TestServer;
let client: OpenAI;
const model = 'whaler-1m';
beforeAll(async () => {
  served = await startTestServer();
  client = served.client;
});
afterAll(() => served.close());
afterEach(() => served.expectIdle());

const PROMPT = 'Call me Ishmael. Some years ago';
const complete = (more: Partial<OpenAI.CompletionCreateParamsNonStreaming> = {}) =>
  client.completions.create({ model, prompt: PROMPT, max_tokens: 12, temperature: 0, ...more });

/** All chunks of a stream, and the texts of its choices. */
async function readCompletion(more: Partial<OpenAI.CompletionCreateParamsStreaming> = {}) {
  const stream = await client.completions.create({
    model,
    prompt: PROMPT,
    max_tokens: 12,
    temperature: 0,
    ...more,
    stream: true,
  });
  const chunks: OpenAI.Completion[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  const texts: string[] = [];
  for (const { choices } of chunks) for (const { index, text } of choices) texts[index] = (texts[index] ?? '') + text;
  return { chunks, texts };
}

describe('POST /v1/completions', () => {
  it('goes on as the engine does', async () => {
    const { tokenizer } = served.model.engineModel;
    const prompt = tokenizer.encode(PROMPT);
    const { tokens } = await served.engine.complete({ prompt, maxNewTokens: 12 });
    const answer = await complete();
    expect(answer.choices).toEqual([{ index: 0, text: tokenizer.decode(tokens), logprobs: null, finish_reason: 'length' }]);
    expect(answer).toMatchObject({ object: 'text_completion', model });
    expect(answer.usage).toEqual({
      prompt_tokens: prompt.length,
      completion_tokens: 12,
      total_tokens: prompt.length + 12,
      // All but the last token, whose logits choose the first of the answer.
      prompt_tokens_details: { cached_tokens: prompt.length - 1 },
    });
  });
});
