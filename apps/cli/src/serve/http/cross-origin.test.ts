import { afterEach, describe, expect, it } from 'vitest';
import { UsageError } from '../../cli-error.ts';
import { ApiKeys } from './api-keys.ts';
import { parseOrigins } from './cross-origin.ts';
import { EventStream } from './event-stream.ts';
import { openApp } from './open-app.ts';
import { requireKeys } from './tenant.ts';

const LIMITS = { maxBodyBytes: 1000, maxConnections: 100, requestMs: 20_000, stallMs: 20_000 };
const PAGE = 'https://chat.example';

const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

/** A server with a key that answers in one piece and as a stream. */
async function listening(origins: readonly string[]): Promise<string> {
  const app = openApp({ limits: LIMITS, origins, onBug: () => {}, onReply: () => {} });
  requireKeys(app, new ApiKeys(['the-key']));
  app.get('/whole', async () => ({ ok: true }));
  app.get('/stream', async (_, reply) => {
    reply.hijack();
    const stream = new EventStream(reply.raw, LIMITS.stallMs);
    stream.open();
    await stream.end('data: [DONE]\n\n');
  });
  open.push(app);
  return app.listen({ host: '127.0.0.1', port: 0 });
}

const ask = (url: string, origin: string | null, headers = {}, method = 'GET') =>
  fetch(url, { method, headers: { authorization: 'Bearer the-key', ...(origin !== null && { origin }), ...headers } });
const allowed = (response: Response) => response.headers.get('access-control-allow-origin');

describe('pages of an origin that is allowed', () => {
  it('read answers, streams and errors', async () => {
    const url = await listening([PAGE, 'http://localhost:5173']);
    for (const path of ['whole', 'stream', 'nowhere']) {
      for (const origin of [PAGE, 'http://localhost:5173']) {
        expect(allowed(await ask(`${url}/${path}`, origin)), path).toBe(origin);
      }
    }
    const refused = await ask(`${url}/whole`, PAGE, { authorization: 'Bearer another' });
    expect([refused.status, allowed(refused)]).toEqual([401, PAGE]);
    expect(refused.headers.get('vary')).toBe('origin');
  });

  it('are let in by their browser’s question, which has no key', async () => {
    const url = await listening([PAGE]);
    const question = {
      origin: PAGE,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization, content-type, x-stainless-lang',
    };
    const answer = await fetch(`${url}/v1/chat/completions`, { method: 'OPTIONS', headers: question });
    expect([answer.status, allowed(answer)]).toEqual([204, PAGE]);
    expect(answer.headers.get('access-control-allow-headers')).toBe('authorization, content-type, x-stainless-lang');
    expect(answer.headers.get('access-control-allow-methods')).toBe('GET, POST');
    const odd = { ...question, 'access-control-request-headers': 'x'.repeat(2000) };
    const plain = await fetch(`${url}/whole`, { method: 'OPTIONS', headers: odd });
    expect(plain.headers.get('access-control-allow-headers')).toBe('authorization, content-type');
  });

  it('are all pages with *', async () => {
    const url = await listening(['*']);
    const answer = await ask(`${url}/whole`, 'https://any.example');
    expect([allowed(answer), answer.headers.get('vary')]).toEqual(['*', null]);
  });
});

describe('pages of another origin', () => {
  it('get no leave, with the flag and without it, and others are answered as ever', async () => {
    for (const origins of [[PAGE], []]) {
      const url = await listening(origins);
      for (const origin of ['https://chat.example.evil.example', 'http://chat.example', 'null', null]) {
        const answer = await ask(`${url}/whole`, origin);
        expect([answer.status, allowed(answer)]).toEqual([200, null]);
      }
      const question = { origin: 'https://evil.example', 'access-control-request-method': 'POST' };
      const refused = await fetch(`${url}/whole`, { method: 'OPTIONS', headers: question });
      expect([refused.status, allowed(refused)]).toEqual([401, null]);
    }
  });
});

it('origins are told from addresses, and several stand between commas', () => {
  expect(parseOrigins('https://chat.example:8443, http://localhost:5173')).toEqual([
    'https://chat.example:8443',
    'http://localhost:5173',
  ]);
  expect(parseOrigins('*')).toEqual(['*']);
  for (const text of ['', 'chat.example', 'https://chat.example/', 'https://chat.example/page', 'HTTPS://chat.example', '*,'])
    expect(() => parseOrigins(text), text).toThrow(UsageError);
});
