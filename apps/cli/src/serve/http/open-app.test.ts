import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { connectTo, requestText } from '../../../test/support/raw-connection.ts';
import { ApiKeys } from './api-keys.ts';
import { type HttpLimits, openApp } from './open-app.ts';
import { requireKeys } from './tenant.ts';

const LIMITS: HttpLimits = { maxBodyBytes: 1000, maxConnections: 100, requestMs: 20_000, stallMs: 20_000 };
const LARGE = 'x'.repeat(2 ** 26);

const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

/** A server with a few routes that listens. */
async function listening(limits: Partial<HttpLimits> = {}, keys: readonly string[] = []) {
  const bugs: unknown[] = [];
  const replies: [string, number][] = [];
  const app = openApp({
    limits: { ...LIMITS, ...limits },
    onBug: (error) => bugs.push(error),
    onReply: (route, status) => replies.push([route, status]),
  });
  requireKeys(app, new ApiKeys(keys));
  app.post('/echo', async ({ body }) => body);
  app.get('/open', { config: { isOpen: true } }, async () => ({ ok: true }));
  app.get('/large', async () => ({ text: LARGE }));
  app.get('/bug', async () => {
    throw new Error('the secret of the server');
  });
  open.push(app);
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const post = (body: BodyInit, type = 'application/json') =>
    fetch(`${url}/echo`, { method: 'POST', headers: { 'content-type': type }, body });
  return { app, url, bugs, replies, post };
}

/** Expects an error in OpenAI's form. */
async function expectError(response: Response, status: number, code: string | null): Promise<string> {
  expect(response.status).toBe(status);
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  const body = await response.json();
  expect(body).toEqual({ error: { message: expect.any(String), type: expect.any(String), param: null, code } });
  return body.error.message;
}

describe('a request is answered with an error of OpenAI’s form when', () => {
  it('its body is too large, said or not', async () => {
    const { post, url } = await listening();
    expect((await post(JSON.stringify({ text: 'x'.repeat(900) }))).status).toBe(200);
    await expectError(await post(JSON.stringify({ text: 'x'.repeat(1000) })), 413, 'request_too_large');
    const endless = await connectTo(url);
    endless.write('POST /echo HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n');
    // Only an answer ends it.
    const chunk = `400\r\n${'x'.repeat(1024)}\r\n`;
    const writing = setInterval(() => endless.write(chunk), 1);
    expect(await endless.closed).toMatch(/^HTTP\/1.1 413 .*request_too_large/s);
    clearInterval(writing);
  });

  it('its body is no JSON object in UTF-8', async () => {
    const { post } = await listening();
    for (const body of ['', '{', 'null', '[1]', '7', Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d)]) {
      expect([400, body]).toEqual([(await post(body as BodyInit)).status, body]);
    }
    expect(await expectError(await post(Uint8Array.of(0xc3, 0x28)), 400, 'invalid_json')).toMatch(/not UTF-8/);
    expect(await expectError(await post('{'), 400, 'invalid_json')).toMatch(/not JSON/);
    expect(await expectError(await post('[]'), 400, 'invalid_json')).toMatch(/must be a JSON object/);
  });

  it('its body is of another type', async () => {
    const { post } = await listening();
    await expectError(await post('a=1', 'application/x-www-form-urlencoded'), 415, 'unsupported_media_type');
  });

  it('nobody knows the address, or not that way', async () => {
    const { url } = await listening();
    await expectError(await fetch(`${url}/nowhere`), 404, 'unknown_url');
    await expectError(await fetch(`${url}/%ff`), 400, null);
    const wrong = await fetch(`${url}/echo?a=1`);
    expect(wrong.headers.get('allow')).toBe('POST');
    await expectError(wrong, 405, 'method_not_allowed');
  });

  it('it has no key, whatever it asks; but not where none is asked for', async () => {
    const { url } = await listening({}, ['key']);
    await expectError(await fetch(`${url}/large`), 401, 'missing_api_key');
    await expectError(await fetch(`${url}/nowhere`), 401, 'missing_api_key');
    const wrong = await fetch(`${url}/large`, { headers: { authorization: 'Bearer lock' } });
    expect(wrong.headers.get('www-authenticate')).toBe('Bearer');
    await expectError(wrong, 401, 'invalid_api_key');
    expect((await fetch(`${url}/open`)).status).toBe(200);
  });

  it('the server has a bug, of which it tells nothing', async () => {
    const { url, bugs } = await listening();
    expect(await expectError(await fetch(`${url}/bug`), 500, 'internal')).not.toMatch(/secret/);
    expect(bugs).toEqual([new Error('the secret of the server')]);
  });

  it.each([
    ['is no HTTP', 'HELLO\r\n\r\n', /^HTTP\/1.1 400 .*bad_request/s],
    ['has headers without end', `GET / HTTP/1.1\r\nx: ${'y'.repeat(20_000)}`, /^HTTP\/1.1 431 .*headers_too_large/s],
    ['says two lengths', 'POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n', /^HTTP\/1.1 400 /],
  ])('it %s', async (_, text, answer) => {
    const { url } = await listening();
    const connection = await connectTo(url);
    connection.write(text);
    expect(await connection.closed).toMatch(answer);
  });
});

describe('who is slow', () => {
  const drip = (text: string) => async (url: string) => {
    const connection = await connectTo(url);
    let at = 0;
    const writing = setInterval(() => connection.write(text[at++ % text.length]), 5);
    const answer = await connection.closed;
    clearInterval(writing);
    return answer;
  };

  it.each([
    ['with headers', drip('GET / HTTP/1.1\r\nx: y'.padEnd(10_000, 'y'))],
    [
      'with a body',
      async (url: string) => {
        const connection = await connectTo(url);
        connection.write('POST /echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n');
        const writing = setInterval(() => connection.write('{'), 5);
        const answer = await connection.closed;
        clearInterval(writing);
        return answer;
      },
    ],
    ['to say anything', async (url: string) => (await connectTo(url)).closed],
  ])('%s is told so, and the connection ends', async (_, talk) => {
    const { url } = await listening({ requestMs: 200 });
    expect(await talk(url)).toMatch(/^HTTP\/1.1 408 .*request_timeout/s);
  });

  it('to take a reply is cut off', async () => {
    const { app, url } = await listening({ stallMs: 200 });
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', () => {});
    await once(socket, 'connect');
    socket.pause();
    socket.write('GET /large HTTP/1.1\r\nhost: a\r\n\r\n');
    await vi.waitFor(
      () =>
        new Promise<void>((resolve, reject) =>
          app.server.getConnections((_, count) => (count === 1 ? resolve() : reject(count))),
        ),
      30_000,
    );
    await vi.waitFor(
      () =>
        new Promise<void>((resolve, reject) =>
          app.server.getConnections((_, count) => (count === 0 ? resolve() : reject(count))),
        ),
      10_000,
    );
    socket.destroy();
  });
});

describe('many at a time', () => {
  it('are as many connections as may be, and others come in when these have gone', async () => {
    const { url } = await listening({ maxConnections: 4 });
    const held = await Promise.all(Array.from({ length: 4 }, () => connectTo(url)));
    expect(await (await connectTo(url)).closed).toBe('');
    for (const { socket } of held) socket.destroy();
    await vi.waitFor(async () => expect((await fetch(`${url}/open`)).status).toBe(200), 30_000);
  });

  it('are answered in order on one connection', async () => {
    const { url } = await listening();
    const connection = await connectTo(url);
    const numbers = Array.from({ length: 200 }, (_, i) => i);
    connection.write(numbers.map((i) => requestText('/echo', { i }, i === 199 ? ['connection: close'] : [])).join(''));
    const answers = await connection.closed;
    expect([...answers.matchAll(/\{"i":(\d+)\}/g)].map(([, i]) => Number(i))).toEqual(numbers);
  });
});

it('tells of every reply which route it was, and how it ended', async () => {
  const { url, replies } = await listening();
  await fetch(`${url}/open`);
  await fetch(`${url}/nowhere`);
  await fetch(`${url}/bug`);
  await vi.waitFor(
    () =>
      expect(replies).toEqual([
        ['/open', 200],
        ['unknown', 404],
        ['/bug', 500],
      ]),
    30_000,
  );
});
