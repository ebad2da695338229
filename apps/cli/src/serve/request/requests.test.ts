import { describe, expect, it } from 'vitest';
import { readChatRequest } from './chat-request.ts';
import { readCompletionRequest } from './completion-request.ts';

const VOCAB = 100;
const hello = [{ role: 'user', content: 'hello' }];
const completion = (body: object = {}) => readCompletionRequest({ prompt: 'hello', ...body }, VOCAB);
const chat = (body: object = {}) => readChatRequest({ messages: hello, ...body }, VOCAB);

describe('a completion', () => {
  it('has OpenAI’s defaults', () => {
    const { prompts, echo, order } = completion();
    expect([prompts, echo]).toEqual([['hello'], false]);
    expect(order).toEqual({
      numAnswers: 1,
      maxTokens: 16,
      sampling: { temperature: 1, topP: 1, seed: expect.any(Number) },
      stops: [],
      ignoreEnd: false,
      numTopTokens: null,
      edits: { bias: new Map(), presencePenalty: 0, frequencyPenalty: 0 },
      priority: 0,
      cacheSalt: null,
      model: null,
      stream: false,
      includeUsage: false,
    });
  });

  it('takes null for what is left out, and fields that change nothing', () => {
    const nothing = Object.fromEntries(
      ['n', 'max_tokens', 'stop', 'seed', 'stream', 'stream_options', 'logprobs'].map((name) => [name, null]),
    );
    expect(completion({ ...nothing, user: 'me', metadata: { a: 1 }, best_of: 1, suffix: '' }).order).toMatchObject({
      numAnswers: 1,
    });
  });

  it.each([
    ['a text', 'a', ['a']],
    ['an empty text', '', ['']],
    ['tokens', [1, 2], [[1, 2]]],
    ['texts', ['a', 'b'], ['a', 'b']],
    ['lists of tokens', [[1], [2, 3]], [[1], [2, 3]]],
  ])('takes %s as prompt', (_, prompt, prompts) => {
    expect(completion({ prompt }).prompts).toEqual(prompts);
  });

  it('takes everything that changes an answer', () => {
    const { order, echo } = completion({
      model: 'm',
      n: 3,
      max_tokens: 5,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 7,
      seed: 42,
      stop: ['a', 'b'],
      stream: true,
      stream_options: { include_usage: true },
      ignore_eos: true,
      presence_penalty: 1,
      frequency_penalty: -1,
      logit_bias: { 3: -100 },
      service_tier: 'priority',
      cache_salt: 's',
      echo: true,
    });
    expect(order).toEqual({
      numAnswers: 3,
      maxTokens: 5,
      sampling: { temperature: 0.5, topP: 0.9, topK: 7, seed: 42 },
      stops: ['a', 'b'],
      ignoreEnd: true,
      numTopTokens: null,
      edits: { bias: new Map([[3, -100]]), presencePenalty: 1, frequencyPenalty: -1 },
      priority: 1,
      cacheSalt: 's',
      model: 'm',
      stream: true,
      includeUsage: true,
    });
    expect(echo).toBe(true);
  });

  it('gives each whole number a seed of its own, negative ones too', () => {
    const seeds = [0, 1, -1, 2 ** 31, -(2 ** 31)].map((seed) => completion({ seed }).order.sampling.seed as number);
    expect(new Set(seeds).size).toBe(seeds.length);
    for (const seed of seeds) expect(Number.isSafeInteger(seed + 128) && seed >= 0).toBe(true);
  });
});

describe('a request is refused, and the field named, with', () => {
  it.each([
    ['no prompt', { prompt: undefined }, 'prompt'],
    ['a prompt that is none', { prompt: 7 }, 'prompt'],
    ['an empty list of prompts', { prompt: [] }, 'prompt'],
    ['mixed prompts', { prompt: [1, 'a'] }, 'prompt'],
    ['half a token', { prompt: [1.5] }, 'prompt'],
    ['too many prompts', { prompt: new Array(129).fill('a') }, 'prompt'],
    ['no answers', { n: 0 }, 'n'],
    ['too many answers', { n: 1e9 }, 'n'],
    ['an answer without tokens', { max_tokens: 0 }, 'max_tokens'],
    ['a temperature that is a text', { temperature: '1' }, 'temperature'],
    ['a temperature below zero', { temperature: -0.1 }, 'temperature'],
    ['a temperature above two', { temperature: 2.1 }, 'temperature'],
    ['no probability at all', { top_p: 0 }, 'top_p'],
    ['a seed that is none', { seed: 0.5 }, 'seed'],
    ['an empty stop', { stop: '' }, 'stop'],
    ['an empty stop among others', { stop: ['a', ''] }, 'stop'],
    ['half a character as stop', { stop: '\ud800' }, 'stop'],
    ['too many stops', { stop: new Array(17).fill('a') }, 'stop'],
    ['options of a stream without one', { stream_options: { include_usage: true } }, 'stream_options'],
    ['a bias of no token', { logit_bias: { 100: 1 } }, 'logit_bias.100'],
    ['a bias of a word', { logit_bias: { whale: 1 } }, 'logit_bias.whale'],
    ['a bias beyond measure', { logit_bias: { 1: 101 } }, 'logit_bias.1'],
    ['too many probabilities', { logprobs: 6 }, 'logprobs'],
    ['probabilities of an echo', { logprobs: 1, echo: true }, 'logprobs'],
    ['a suffix', { suffix: 'end' }, 'suffix'],
    ['the best of several', { best_of: 3 }, 'best_of'],
    ['an unknown tier', { service_tier: 'gold' }, 'service_tier'],
  ])('%s', (_, body, param) => {
    expect(() => completion(body)).toThrow(
      expect.objectContaining({ status: 400, param, message: expect.stringContaining(param) }),
    );
  });

  it.each([
    ['no messages', { messages: undefined }, 'messages'],
    ['an empty conversation', { messages: [] }, 'messages'],
    ['a message without a role', { messages: [{ content: 'a' }] }, 'messages[0].role'],
    ['an unknown role', { messages: [...hello, { role: 'pirate', content: 'a' }] }, 'messages[1].role'],
    ['a message without a text', { messages: [{ role: 'user' }] }, 'messages[0].content'],
    ['a picture', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] }, 'messages[0].content'],
    ['tools', { tools: [{ type: 'function' }] }, 'tools'],
    ['a form of answers', { response_format: { type: 'json_object' } }, 'response_format'],
    ['likely tokens without probabilities', { top_logprobs: 2 }, 'top_logprobs'],
    ['too many likely tokens', { logprobs: true, top_logprobs: 21 }, 'top_logprobs'],
  ])('%s in a conversation', (_, body, param) => {
    expect(() => chat(body)).toThrow(expect.objectContaining({ status: 400, param }));
  });
});

describe('a conversation', () => {
  it('may have parts, names, and developers', () => {
    const { messages } = chat({
      messages: [
        { role: 'developer', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
          name: 'Ahab',
        },
      ],
    });
    expect(messages).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'ab', name: 'Ahab' },
    ]);
  });

  it('prefers the newer name of the most tokens, and has no number of its own', () => {
    expect(chat({ max_tokens: 3, max_completion_tokens: 4 }).order.maxTokens).toBe(4);
    expect(chat({ max_tokens: 3 }).order.maxTokens).toBe(3);
    expect(chat().order.maxTokens).toBeNull();
  });

  it('tells probabilities when it is asked, of none, some or twenty', () => {
    expect(chat().order.numTopTokens).toBeNull();
    expect(chat({ logprobs: false }).order.numTopTokens).toBeNull();
    expect(chat({ logprobs: true }).order.numTopTokens).toBe(0);
    expect(chat({ logprobs: true, top_logprobs: 20 }).order.numTopTokens).toBe(20);
  });

  it('takes fields that ask for what is anyway', () => {
    expect(() => chat({ tools: [], response_format: { type: 'text' }, tool_choice: 'none' })).not.toThrow();
  });
});
