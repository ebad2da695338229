import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { startTestServer, type TestServer } from '../support/test-server.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

let served: TestServer;
let client: OpenAI;
beforeAll(async () => {
  served = await startTestServer();
  client = served.client;
});
afterAll(() => served.close());
afterEach(() => served.expectIdle());

const model = 'whaler-1m';
const PROMPT = 'Call me Ishmael. Some years ago';
const NUM_TOKENS = 12;

type CompletionParams = Omit<Partial<OpenAI.CompletionCreateParams>, 'stream'> & Record<string, unknown>;
type ChatParams = Omit<Partial<OpenAI.ChatCompletionCreateParams>, 'stream'> & Record<string, unknown>;

const complete = (more: CompletionParams = {}) =>
  client.completions.create({ model, prompt: PROMPT, max_tokens: NUM_TOKENS, temperature: 0, ...more });

/** A completion that comes as a stream: its chunks, and the texts and ends of its choices. */
async function streamCompletion(more: CompletionParams = {}) {
  const params = { model, prompt: PROMPT, max_tokens: NUM_TOKENS, temperature: 0, ...more, stream: true } as const;
  const chunks: OpenAI.Completion[] = [];
  for await (const chunk of await client.completions.create(params)) chunks.push(chunk);
  const choices: { text: string; finish_reason: string | null }[] = [];
  for (const { index, text, finish_reason } of chunks.flatMap((chunk) => chunk.choices)) {
    choices[index] ??= { text: '', finish_reason: null };
    choices[index].text += text;
    choices[index].finish_reason ??= finish_reason;
  }
  return { chunks, choices };
}

const CONVERSATION: OpenAI.ChatCompletionMessageParam[] = [
  { role: 'system', content: 'You are the captain of a whaling ship, and speak of nothing but the sea.' },
  { role: 'user', content: 'Where is the white whale?' },
];
const chat = (more: ChatParams = {}) =>
  client.chat.completions.create({ model, messages: CONVERSATION, max_tokens: NUM_TOKENS, temperature: 0, ...more });

const textsOf = ({ choices }: { choices: readonly { text: string }[] }) => choices.map(({ text }) => text);

/** The pieces of which the greedy answer consists. */
async function greedyPieces(): Promise<string[]> {
  const { tokenizer } = served.model.engineModel;
  const { tokens } = await served.engine.complete({ prompt: tokenizer.encode(PROMPT), maxNewTokens: NUM_TOKENS });
  return tokens.map((token) => tokenizer.decode([token]));
}

describe('POST /v1/completions', () => {
  it('goes on as the engine does, and counts', async () => {
    const { tokenizer } = served.model.engineModel;
    const text = (await greedyPieces()).join('');
    const answer = await complete();
    expect(answer.choices).toEqual([{ index: 0, text, logprobs: null, finish_reason: 'length' }]);
    expect(answer).toMatchObject({ object: 'text_completion', model, id: expect.stringMatching(/^cmpl-/) });
    const promptTokens = tokenizer.encode(PROMPT).length;
    expect(answer.usage).toEqual({
      prompt_tokens: promptTokens,
      completion_tokens: NUM_TOKENS,
      total_tokens: promptTokens + NUM_TOKENS,
      // All but the last token, whose logits choose the first of the answer.
      prompt_tokens_details: { cached_tokens: promptTokens - 1 },
    });
  });

  it('says the same as a stream, piece by piece', async () => {
    const whole = await complete();
    const { chunks, choices } = await streamCompletion({ stream_options: { include_usage: true } });
    expect(choices).toEqual([{ text: whole.choices[0].text, finish_reason: 'length' }]);
    expect(chunks.length).toBeGreaterThan(NUM_TOKENS / 2);
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { completion_tokens: NUM_TOKENS, prompt_tokens: expect.any(Number) },
    });
    const { chunks: without } = await streamCompletion();
    expect(without.every((chunk) => !('usage' in chunk) && chunk.choices.length > 0)).toBe(true);
  });

  it('ends before a stop sequence that lies over two tokens, in one piece and as a stream', async () => {
    const pieces = await greedyPieces();
    const text = pieces.join('');
    const border = pieces.findIndex((piece, i) => {
      const before = pieces.slice(0, i).join('');
      return i >= 3 && text.indexOf(`${before.slice(-1)}${piece[0]}`) === before.length - 1;
    });
    expect(border).toBeGreaterThan(0);
    const before = pieces.slice(0, border).join('');
    const stop = `${before.slice(-1)}${pieces[border][0]}`;
    const expected = { text: before.slice(0, -1), finish_reason: 'stop' };
    const whole = await complete({ stop: [stop, 'never'] });
    expect(whole.choices).toEqual([{ index: 0, logprobs: null, ...expected }]);
    // The token that brought the end is counted, those behind it are not computed.
    expect(whole.usage?.completion_tokens).toBe(border + 1);
    expect((await streamCompletion({ stop })).choices).toEqual([expected]);
    expect(textsOf(await complete({ stop: 'never' }))).toEqual([text]);
  });

  it('gives several answers, which are those of the seeds that follow', async () => {
    const params = { n: 3, temperature: 1.2, seed: 7, max_tokens: 8 };
    const several = await complete(params);
    expect(several.choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(new Set(textsOf(several)).size).toBe(3);
    expect(several.usage?.completion_tokens).toBe(24);
    expect((await streamCompletion(params)).choices.map(({ text }) => text)).toEqual(textsOf(several));
    const alone = [7, 8, 9].map(async (seed) => textsOf(await complete({ ...params, n: 1, seed }))[0]);
    expect(await Promise.all(alone)).toEqual(textsOf(several));
  });

  it('says the same for the same seed, and something else for another or none', async () => {
    const params = { temperature: 1.5, max_tokens: 16 };
    const [first] = textsOf(await complete({ ...params, seed: 123 }));
    expect(textsOf(await complete({ ...params, seed: 123 }))).toEqual([first]);
    expect(textsOf(await complete({ ...params, seed: -123 }))).not.toEqual([first]);
    expect(textsOf(await complete(params))).not.toEqual(textsOf(await complete(params)));
    // Only the most likely token is left.
    expect(textsOf(await complete({ temperature: 1, top_p: 1e-9 }))).toEqual(textsOf(await complete()));
    expect(textsOf(await complete({ temperature: 1, top_k: 1 }))).toEqual(textsOf(await complete()));
  });

  it('answers several prompts in their order, texts and tokens', async () => {
    const { tokenizer } = served.model.engineModel;
    const other = 'The white whale';
    const [one, two] = await Promise.all([complete(), complete({ prompt: other })]);
    const expected = [one, one, two, two].flatMap(textsOf);
    const both = await complete({ prompt: [PROMPT, other], n: 2 });
    expect(textsOf(both)).toEqual(expected);
    expect(both.usage?.prompt_tokens).toBe((one.usage?.prompt_tokens ?? 0) + (two.usage?.prompt_tokens ?? 0));
    const ids = [PROMPT, other].map((text) => [...tokenizer.encode(text)]);
    expect((await streamCompletion({ prompt: ids, n: 2 })).choices.map(({ text }) => text)).toEqual(expected);
  });

  it('echoes the prompt', async () => {
    const [text] = textsOf(await complete());
    expect(textsOf(await complete({ echo: true }))).toEqual([PROMPT + text]);
    expect((await streamCompletion({ echo: true })).choices[0].text).toBe(PROMPT + text);
  });

  it('tells probabilities, of what was said and of what could have been', async () => {
    const { tokenizer } = served.model.engineModel;
    const { logProbabilities } = await served.engine.complete({ prompt: tokenizer.encode(PROMPT), maxNewTokens: NUM_TOKENS });
    const pieces = await greedyPieces();
    const { logprobs } = (await complete({ logprobs: 3 })).choices[0];
    expect(logprobs?.tokens).toEqual(pieces);
    expect(logprobs?.text_offset).toEqual(pieces.map((_, i) => pieces.slice(0, i).join('').length));
    expect(logprobs?.token_logprobs).toEqual(logProbabilities.map((value) => expect.closeTo(value, 4)));
    logprobs?.top_logprobs?.forEach((top, i) => {
      expect(Object.keys(top)).toHaveLength(3);
      // Greedy: what was said is the most likely.
      expect(Math.max(...Object.values(top))).toBeCloseTo(top[pieces[i]], 6);
    });
    const { chunks } = await streamCompletion({ logprobs: 0 });
    expect(chunks.flatMap(({ choices }) => choices[0].logprobs?.tokens ?? [])).toEqual(pieces);
  });

  it('lets a request forbid, wish for, and tire of tokens', async () => {
    const { tokenizer } = served.model.engineModel;
    const [whale] = tokenizer.encode(' whale');
    const wished = await complete({ logit_bias: { [whale]: 100 }, n: 2, temperature: 1, max_tokens: 3 });
    expect(textsOf(wished)).toEqual([' whale whale whale', ' whale whale whale']);
    const tired = await complete({ logit_bias: { [whale]: 20 }, frequency_penalty: 2, presence_penalty: 2, max_tokens: 16 });
    const count = textsOf(tired)[0].split(' whale').length - 1;
    expect(count).toBeGreaterThan(1);
    expect(count).toBeLessThan(16);
    const first = tokenizer.encode((await greedyPieces())[0])[0];
    expect((await complete({ logit_bias: { [first]: -100 } })).choices[0].text).not.toBe((await complete()).choices[0].text);
  });

  it('goes on behind the end of the model only when it is told to', async () => {
    const [end] = served.model.endTokens;
    const ended = await complete({ logit_bias: { [end]: 100 } });
    expect(ended.choices[0]).toMatchObject({ text: '', finish_reason: 'stop' });
    expect(ended.usage?.completion_tokens).toBe(1);
    const further = await complete({ logit_bias: { [end]: 100 }, ignore_eos: true });
    expect(further.choices[0]).toMatchObject({ text: '', finish_reason: 'length' });
  });
});

describe('POST /v1/chat/completions', () => {
  it('answers a conversation, in one piece and as a stream', async () => {
    const whole = await chat();
    expect(whole).toMatchObject({ object: 'chat.completion', model, id: expect.stringMatching(/^chatcmpl-/) });
    const [{ message, finish_reason }] = whole.choices;
    expect(message).toEqual({ role: 'assistant', content: expect.any(String), refusal: null });
    expect(message.content).not.toBe('');
    const stream = await client.chat.completions.create({
      model,
      messages: CONVERSATION,
      max_completion_tokens: NUM_TOKENS,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks[0].choices[0].delta).toEqual({ role: 'assistant', content: '' });
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(message.content);
    expect(chunks.at(-2)?.choices[0]).toMatchObject({ delta: {}, finish_reason });
    expect(chunks.at(-1)?.usage).toMatchObject({ ...whole.usage, prompt_tokens_details: expect.anything() });
  });

  it('reads as the official client reads it, several answers with tokens and their bytes', async () => {
    const reader = client.chat.completions.stream({
      model,
      messages: CONVERSATION,
      max_tokens: 6,
      n: 2,
      seed: 5,
      logprobs: true,
      top_logprobs: 2,
    });
    const { choices } = await reader.finalChatCompletion();
    expect(choices.map(({ index }) => index)).toEqual([0, 1]);
    for (const { message, logprobs } of choices) {
      const entries = logprobs?.content ?? [];
      expect(Buffer.from(entries.flatMap(({ bytes }) => bytes ?? [])).toString()).toBe(message.content);
      for (const { top_logprobs: top } of entries) {
        expect(top).toHaveLength(2);
        expect(top[0].logprob).toBeGreaterThanOrEqual(top[1].logprob);
      }
    }
  });

  it('finds what conversations share: the same turn, the next one, and another behind the same system prompt', async () => {
    const system = `Speak of nothing but the sea. ${'The sea is wide and the whale is white. '.repeat(4)}`;
    const first: OpenAI.ChatCompletionMessageParam[] = [
      { role: 'system', content: system },
      { role: 'user', content: 'Where is the whale?' },
    ];
    const cached = async (messages: OpenAI.ChatCompletionMessageParam[]) => {
      const { usage, choices } = await chat({ messages });
      return { cached: usage?.prompt_tokens_details?.cached_tokens ?? 0, prompt: usage?.prompt_tokens ?? 0, choices };
    };
    const before = await cached(first);
    const again = await cached(first);
    expect(again.cached).toBe(again.prompt - 1);
    const next = await cached([...first, before.choices[0].message, { role: 'user', content: 'And the ship?' }]);
    expect(next.cached).toBeGreaterThan(before.prompt - 16);
    const other = await cached([first[0], { role: 'user', content: 'Who is the captain?' }]);
    const { tokenizer } = served.model.engineModel;
    // A state was kept exactly where the system prompt ends.
    expect(other.cached).toBeGreaterThanOrEqual(tokenizer.encode(`System: ${system}\n`).length);
  });

  it('keeps prompts of one cache salt from those of another', async () => {
    const salted = async (cache_salt: string) =>
      (
        await chat({
          cache_salt,
          messages: [{ role: 'user', content: 'A secret of one of us, long enough for a block or two.' }],
        })
      ).usage?.prompt_tokens_details?.cached_tokens;
    expect(await salted('one')).toBe(0);
    expect(await salted('two')).toBe(0);
    expect(await salted('one')).toBeGreaterThan(16);
  });
});

describe('the routes around', () => {
  it('tell of the model', async () => {
    const list = await client.models.list();
    expect(list.data).toEqual([
      { id: model, object: 'model', created: expect.any(Number), owned_by: 'bufferwise', max_model_len: expect.any(Number) },
    ]);
    expect(await client.models.retrieve(model)).toEqual(list.data[0]);
    await expect(client.models.retrieve('gpt')).rejects.toMatchObject({ status: 404, code: 'model_not_found' });
  });

  it('make tokens of a text or a conversation, and text of tokens', async () => {
    const { tokenizer } = served.model.engineModel;
    const tokenize = async (body: unknown) => (await served.post('/tokenize', body)).json();
    const tokens = [...tokenizer.encode(PROMPT)];
    expect(await tokenize({ prompt: PROMPT })).toMatchObject({ count: tokens.length, tokens });
    expect((await tokenize({ messages: CONVERSATION })).count).toBe((await chat()).usage?.prompt_tokens);
    expect(await (await served.post('/detokenize', { tokens })).json()).toEqual({ prompt: PROMPT });
    expect((await served.post('/detokenize', { tokens: [1024] })).status).toBe(400);
    expect((await served.post('/tokenize', {})).status).toBe(400);
  });

  it('say how it is, in numbers that fit together', async () => {
    expect(await (await served.get('/health')).json()).toEqual({ status: 'ready', model, requests: 0, answers: 0 });
    const value = (text: string, series: string) =>
      Number(
        text
          .split('\n')
          .find((line) => line.startsWith(`${series} `))
          ?.split(' ')[1],
      );
    const before = await (await served.get('/metrics')).text();
    await complete({ n: 2 });
    await expect(complete({ n: 0 })).rejects.toThrow();
    const response = await served.get('/metrics');
    expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0.0.4/);
    const after = await response.text();
    const grown = (series: string) => value(after, series) - (value(before, series) || 0);
    expect(grown('bufferwise_requests_total{route="/v1/completions",status="200"}')).toBe(1);
    expect(grown('bufferwise_requests_total{route="/v1/completions",status="400"}')).toBe(1);
    expect(grown('bufferwise_answers_total{finish_reason="length"}')).toBe(2);
    expect(grown('bufferwise_generated_tokens_total')).toBe(2 * NUM_TOKENS);
    expect(grown('bufferwise_time_to_first_token_seconds_count')).toBe(2);
    expect(grown('bufferwise_inter_token_seconds_count')).toBe(2 * (NUM_TOKENS - 1));
    expect(grown('bufferwise_group_reused_tokens_total{group="2",policy="required"}')).toBeGreaterThan(0);
    expect(value(after, 'bufferwise_answers_running')).toBe(0);
    const slots = ['free', 'evictable', 'locked'].map((state) =>
      value(after, `bufferwise_pool_slots{pool_group="0",state="${state}"}`),
    );
    expect(slots.reduce((sum, each) => sum + each, 0)).toBe(served.engine.storage()[0].total);
  });

  it('show everything that the cache holds, but nothing that anybody said', async () => {
    await complete();
    const { cache, answers, storage } = await (await served.get('/inspect')).json();
    expect(answers).toEqual({ admitted: 0, active: 0, waiting: 0 });
    expect(cache.requests).toEqual([]);
    expect(storage).toHaveLength(served.engine.storage().length);
    const blocks = cache.tree.flatMap((scope: { blocks: { tokens: unknown[] }[] }) => scope.blocks);
    expect(blocks.length).toBeGreaterThan(0);
    expect(blocks.flatMap(({ tokens }: { tokens: unknown[] }) => tokens)).toEqual([]);
    const page = await fetch(`${served.url}/inspect`, { headers: { accept: 'text/html, */*;q=0.8' } });
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await page.text()).toContain(`<h1>${model}</h1>`);
  });
});

describe('an error has OpenAI’s form, and the client’s class, for', () => {
  it.each([
    [
      'a field that is wrong',
      () => complete({ temperature: 9 }),
      OpenAI.BadRequestError,
      { code: 'invalid_value', param: 'temperature' },
    ],
    ['another model', () => complete({ model: 'gpt-4' }), OpenAI.NotFoundError, { code: 'model_not_found', param: 'model' }],
    ['another model of a stream', () => streamCompletion({ model: 'gpt-4' }), OpenAI.NotFoundError, { code: 'model_not_found' }],
    [
      'an answer that is too long',
      () => complete({ max_tokens: 1e6 }),
      OpenAI.BadRequestError,
      { code: 'context_length_exceeded' },
    ],
    [
      'a prompt that is too long',
      () => chat({ messages: [{ role: 'user', content: 'whale '.repeat(50_000) }] }),
      OpenAI.BadRequestError,
      { code: 'context_length_exceeded' },
    ],
    ['an empty prompt', () => complete({ prompt: '' }), OpenAI.BadRequestError, { code: 'invalid_prompt' }],
    ['an empty prompt of a stream', () => streamCompletion({ prompt: '' }), OpenAI.BadRequestError, { code: 'invalid_prompt' }],
    [
      'a token that there is not',
      () => complete({ prompt: [5000] }),
      OpenAI.BadRequestError,
      { code: 'invalid_prompt', param: 'prompt[0]' },
    ],
    [
      'what the server cannot do',
      () => chat({ tools: [{ type: 'function', function: { name: 'f' } }] }),
      OpenAI.BadRequestError,
      { code: 'unsupported_parameter', param: 'tools' },
    ],
    [
      'more answers than there are places',
      () => complete({ n: 17 }),
      OpenAI.BadRequestError,
      { code: 'too_many_answers', param: 'n' },
    ],
  ])('%s', async (_, ask, type, fields) => {
    const error = await ask().then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ ...fields, type: 'invalid_request_error' });
  });
});
