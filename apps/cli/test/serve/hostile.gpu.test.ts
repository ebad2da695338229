import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { connectTo, requestText } from '../support/raw-connection.ts';
import { LLAMA, startTestServer, type TestServer } from '../support/test-server.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const LIMITS = { maxActive: 4, maxQueue: 4, stallMs: 1_000, requestMs: 5_000, maxBodyBytes: 2 ** 16 };
let served: TestServer;
beforeAll(async () => {
  served = await startTestServer({ model: LLAMA, limits: LIMITS, keys: ['ahab', 'ishmael'], ignoresContextLength: true });
});
afterAll(() => served.close());
afterEach(() => served.expectIdle());

const COMPLETIONS = '/v1/completions';
const AUTHORIZED = ['authorization: Bearer ahab'];
const SHORT = { prompt: 'a', max_tokens: 2, ignore_eos: true };
/** An answer that goes on until somebody ends it. */
const ENDLESS = { ...SHORT, max_tokens: 50_000 };

const running = () => vi.waitFor(() => expect(served.engine.load.active).toBeGreaterThan(0), { timeout: 60_000, interval: 10 });

describe('an answer ends, and holds nothing, when its client', () => {
  it('leaves in the middle of a stream', async () => {
    const controller = new AbortController();
    const stream = await served.client.completions.create(
      { ...ENDLESS, model: 'llama-103', stream: true },
      { signal: controller.signal },
    );
    let numChunks = 0;
    for await (const _ of stream) {
      if (++numChunks === 3) controller.abort();
    }
    await served.expectIdle();
    expect(served.engine.costs.numTokens).toBeLessThan(1000);
  });

  it('leaves before a whole answer is there', async () => {
    const controller = new AbortController();
    const answer = served.post(COMPLETIONS, ENDLESS, { signal: controller.signal });
    await running();
    controller.abort();
    await expect(answer).rejects.toThrow();
    await served.expectIdle();
  });

  it('closes his half of the connection', async () => {
    const connection = await connectTo(served.url);
    connection.write(requestText(COMPLETIONS, { ...ENDLESS, stream: true }, AUTHORIZED));
    await running();
    connection.socket.end();
    expect(await connection.closed).toMatch(/^HTTP\/1.1 200 /);
  });

  it('closes his half in the middle of a request', async () => {
    const connection = await connectTo(served.url);
    connection.write(requestText(COMPLETIONS, SHORT, AUTHORIZED).slice(0, -5));
    connection.socket.end();
    expect(await connection.closed).not.toMatch(/200 OK/);
  });

  it('asks for several answers to several prompts on one connection, and leaves it', async () => {
    const connection = await connectTo(served.url);
    const one = requestText(COMPLETIONS, { ...ENDLESS, prompt: ['a', 'b'], n: 2, stream: true }, AUTHORIZED);
    connection.write(one + requestText(COMPLETIONS, { ...ENDLESS, n: 2 }, AUTHORIZED));
    await vi.waitFor(() => expect(served.engine.load.active + served.engine.load.waiting).toBe(6), { timeout: 60_000 });
    connection.socket.destroy();
    await served.expectIdle();
  });

  it('never reads his stream, with little kept for him, while others are answered', async () => {
    // Many answers at a time, and twenty likely tokens with each piece: the buffers of the system are soon full.
    const limits = { ...LIMITS, maxActive: 32 };
    const fast = await startTestServer({ model: LLAMA, limits, keys: ['ahab'], ignoresContextLength: true });
    const connection = await connectTo(fast.url);
    connection.socket.pause();
    const messages = [{ role: 'user', content: 'a' }];
    const params = { ...ENDLESS, messages, n: 31, logprobs: true, top_logprobs: 20, stream: true };
    const heap = () => process.memoryUsage().arrayBuffers;
    const before = heap();
    connection.write(requestText('/v1/chat/completions', params, AUTHORIZED));
    await vi.waitFor(() => expect(fast.engine.load.active).toBeGreaterThan(0), { timeout: 60_000, interval: 10 });
    expect((await fast.post(COMPLETIONS, SHORT)).status).toBe(200);
    await fast.expectIdle();
    expect(heap() - before).toBeLessThan(32 * 2 ** 20);
    connection.socket.destroy();
    await fast.close();
  });
});

describe('keys', () => {
  it('are asked for everywhere but of the health', async () => {
    for (const path of ['/v1/models', '/metrics', '/inspect', '/nowhere']) {
      expect([path, (await fetch(served.url + path)).status]).toEqual([path, 401]);
    }
    expect((await fetch(`${served.url}${COMPLETIONS}`, { method: 'POST', body: '{' })).status).toBe(401);
    expect((await fetch(`${served.url}/health`)).status).toBe(200);
  });

  it('keep what one has said from the other', async () => {
    const prompt = 'what only one of them has ever said, in more than a block of tokens';
    const cached = async (key: string) => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
      const { usage } = await (await served.post(COMPLETIONS, { ...SHORT, prompt }, { headers })).json();
      return usage.prompt_tokens_details.cached_tokens;
    };
    // All prompts of this tokenizer begin with the three bytes of a space.
    const begins = 3;
    expect(await cached('ahab')).toBeLessThanOrEqual(begins);
    expect(await cached('ishmael')).toBeLessThanOrEqual(begins);
    expect(await cached('ahab')).toBeGreaterThan(16);
  });
});

describe('a flood', () => {
  it('of requests is answered, each at once or with the time to come again', async () => {
    const answers = await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        const response = await served.post(COMPLETIONS, { ...SHORT, prompt: `request ${i}`, max_tokens: 8 });
        return { status: response.status, retry: response.headers.get('retry-after'), body: await response.json() };
      }),
    );
    const byStatus = (status: number) => answers.filter((answer) => answer.status === status);
    expect(byStatus(200).length + byStatus(429).length).toBe(100);
    expect(byStatus(200).length).toBeGreaterThanOrEqual(LIMITS.maxActive + LIMITS.maxQueue);
    expect(byStatus(429).length).toBeGreaterThan(0);
    for (const { retry, body } of byStatus(429)) {
      expect(Number(retry)).toBeGreaterThanOrEqual(1);
      expect(body.error).toMatchObject({ type: 'rate_limit_error', code: 'queue_full' });
    }
  });

  it('of bodies that are too large leaves the server as it was', async () => {
    const large = { ...SHORT, prompt: 'x'.repeat(2 ** 20) };
    const statuses = await Promise.all(
      Array.from({ length: 20 }, () =>
        served.post(COMPLETIONS, large).then(
          ({ status }) => status,
          // The server may close the connection while the rest is still on its way.
          () => 413,
        ),
      ),
    );
    expect(new Set(statuses)).toEqual(new Set([413]));
    expect((await served.post(COMPLETIONS, SHORT)).status).toBe(200);
  });

  it('of slow and broken clients keeps nobody else waiting', async () => {
    const slow = await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        const connection = await connectTo(served.url);
        connection.write(i % 2 === 0 ? 'POST /v1/completions HTTP/1.1\r\nhost: a\r\nx-slow: ' : 'nonsense\r\n\r\n');
        return connection;
      }),
    );
    expect((await served.post(COMPLETIONS, SHORT)).status).toBe(200);
    const answers = await Promise.all(slow.map(({ closed }) => closed));
    expect(new Set(answers.map((answer) => answer.split(' ')[1]))).toEqual(new Set(['408', '400']));
  });

  it('of fields that mean nothing is refused in OpenAI’s form', async () => {
    const bodies = [
      '{"prompt": {"__proto__": []}}',
      '{"__proto__": {"prompt": "a"}}',
      `{"prompt": ${'['.repeat(5000)}${']'.repeat(5000)}}`,
      `{"prompt": "a", "suffix": ${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
      '{"prompt": "a", "n": 1e400}',
      '{"prompt": "a", "max_tokens": -0.5}',
      '{"prompt": "a", "stop": [[["a"]]]}',
      '{"prompt": "a", "logit_bias": {"-1": 1}}',
      Uint8Array.of(0xff, 0xfe, 0x00),
    ];
    for (const body of bodies) {
      const response = await served.post(COMPLETIONS, body);
      expect(response.status).toBe(400);
      expect((await response.json()).error).toMatchObject({ message: expect.any(String), type: 'invalid_request_error' });
    }
  });
});

describe('half a character', () => {
  it('never comes out of a stream, which says what a whole answer says', async () => {
    // Every byte is a token of this model, so most of what it draws is no UTF-8.
    const params = { ...SHORT, model: 'llama-103', max_tokens: 200, temperature: 2, seed: 3 };
    const whole = await served.client.completions.create(params);
    let text = '';
    for await (const { choices } of await served.client.completions.create({ ...params, stream: true })) text += choices[0].text;
    expect(text).toBe(whole.choices[0].text);
    expect(text).toContain('\ufffd');
  });
});
