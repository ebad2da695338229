import { propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { LLAMA, startTestServer, type TestServer } from '../support/test-server.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const exporter = new InMemorySpanExporter();
let served: TestServer;
beforeAll(async () => {
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  served = await startTestServer({ model: LLAMA, limits: { maxActive: 2, maxQueue: 0 } });
});
afterAll(() => served.close());
beforeEach(() => exporter.reset());

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const PARENT_ID = 'b7ad6b7169203331';
const PROMPT = 'Call me Ishmael.';
const asked = { model: 'llama-103', prompt: PROMPT, max_tokens: 4, temperature: 0, seed: 7 };

async function spanOf(ask: () => Promise<unknown>) {
  await ask();
  await vi.waitFor(() => expect(exporter.getFinishedSpans()).toHaveLength(1), 30_000);
  return exporter.getFinishedSpans()[0];
}

it('a request goes on in the trace of its client, with what it took and nothing of what was said', async () => {
  const headers = { 'content-type': 'application/json', traceparent: `00-${TRACE_ID}-${PARENT_ID}-01` };
  const { usage } = await served.client.completions.create(asked);
  exporter.reset();
  const span = await spanOf(() => served.post('/v1/completions', { ...asked, n: 2 }, { headers }).then((reply) => reply.json()));
  expect(span).toMatchObject({
    name: 'text_completion llama-103',
    kind: SpanKind.SERVER,
    status: { code: SpanStatusCode.UNSET },
  });
  expect(span.spanContext().traceId).toBe(TRACE_ID);
  expect(span.parentSpanContext?.spanId).toBe(PARENT_ID);
  expect(span.attributes).toMatchObject({
    'gen_ai.operation.name': 'text_completion',
    'gen_ai.request.model': 'llama-103',
    'gen_ai.request.choice.count': 2,
    'gen_ai.request.max_tokens': 4,
    'gen_ai.request.temperature': 0,
    'gen_ai.request.seed': 7,
    'gen_ai.response.finish_reasons': ['length', 'length'],
    'gen_ai.usage.input_tokens': usage?.prompt_tokens,
    'gen_ai.usage.output_tokens': 8,
  });
  expect(span.events.map(({ name }) => name)).toEqual(['gen_ai.first_token']);
  expect(JSON.stringify([span.attributes, span.events])).not.toContain('Ishmael');
});

it('a stream is one span, which ends with it', async () => {
  const span = await spanOf(async () => {
    const stream = await served.client.chat.completions.create({
      model: 'llama-103',
      messages: [{ role: 'user', content: PROMPT }],
      max_tokens: 3,
      temperature: 0,
      stream: true,
    });
    for await (const _ of stream);
  });
  expect(span.name).toBe('chat llama-103');
  expect(span.attributes).toMatchObject({ 'bufferwise.request.stream': true, 'gen_ai.usage.output_tokens': 3 });
});

it.each([
  ['another model', { ...asked, model: 'nobody' }, { 'error.type': 'model_not_found', 'http.response.status_code': 404 }],
  [
    'more answers than there is room for',
    { ...asked, n: 3 },
    { 'error.type': 'too_many_answers', 'http.response.status_code': 400 },
  ],
])('a request for %s is a span that says why it was refused, and no error of the server', async (_, body, attributes) => {
  const span = await spanOf(() => served.post('/v1/completions', body).then((reply) => reply.json()));
  expect(span.attributes).toMatchObject(attributes);
  expect(span.status.code).toBe(SpanStatusCode.UNSET);
  expect(span.events).toEqual([]);
});

it('a client that leaves ends its span', async () => {
  const leaving = new AbortController();
  const span = await spanOf(async () => {
    const stream = await served.client.completions.create(
      { ...asked, max_tokens: 100, stream: true },
      { signal: leaving.signal },
    );
    for await (const _ of stream) leaving.abort();
  });
  expect(span.attributes).toMatchObject({ 'error.type': 'ClientLeftError' });
  await served.expectIdle();
});
