import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { DONE_FRAME, EventStream, eventFrame } from './event-stream.ts';

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** Serves one request with a stream. Returns the address. */
async function serving(
  answer: (stream: EventStream, response: ServerResponse) => Promise<void>,
  stallMs = 20_000,
): Promise<string> {
  server = createServer((_, response) => void answer(new EventStream(response, stallMs), response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('a stream of events', () => {
  it('has a frame for each, in order, and an end', async () => {
    const url = await serving(async (stream) => {
      stream.open({ 'x-mine': 'yes' });
      await Promise.all([stream.send({ a: 'one\ntwo' }), stream.send({ b: 2 })]);
      await stream.end(DONE_FRAME);
    });
    const response = await fetch(url);
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('x-mine')).toBe('yes');
    expect(await response.text()).toBe('data: {"a":"one\\ntwo"}\n\ndata: {"b":2}\n\ndata: [DONE]\n\n');
    expect(eventFrame('\n\n')).toBe('data: "\\n\\n"\n\n');
  });

  it('waits for a reader who pauses, with little in hand, and goes on with him', async () => {
    const event = { text: 'x'.repeat(2 ** 16) };
    const numEvents = 512;
    let sent = 0;
    let mostBuffered = 0;
    const url = await serving(async (stream, response) => {
      stream.open();
      for (; sent < numEvents; sent++) {
        await stream.send(event);
        mostBuffered = Math.max(mostBuffered, response.writableLength);
      }
      await stream.end();
    });
    const reader = (await fetch(url)).body?.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    await reader.read();
    // Nothing moves any more: what is on the way fits into what the system buffers.
    let before = -1;
    await vi.waitFor(
      () => {
        const still = sent === before;
        before = sent;
        expect(still).toBe(true);
      },
      { interval: 200, timeout: 20_000 },
    );
    expect(sent).toBeLessThan(numEvents);
    while (!(await reader.read()).done);
    expect(sent).toBe(numEvents);
    expect(mostBuffered).toBeLessThan(4 * 2 ** 16);
  });

  it('cuts a reader off who takes nothing, and all that send', async () => {
    const failures: unknown[] = [];
    const url = await serving(async (stream) => {
      stream.open();
      const endless = async () => {
        for (;;) await stream.send('x'.repeat(2 ** 16));
      };
      const outcomes = await Promise.allSettled([endless(), endless()]);
      failures.push(...outcomes.map((outcome) => (outcome as PromiseRejectedResult).reason.name));
    }, 200);
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', () => {});
    socket.pause();
    socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    await vi.waitFor(() => expect(failures).toEqual(['StalledReaderError', 'StalledReaderError']), 10_000);
    socket.destroy();
  });

  it('lets a reader go who leaves', async () => {
    let sent = 0;
    let isDone = false;
    const url = await serving(async (stream, response) => {
      stream.open();
      for (; !response.destroyed; sent++) await stream.send('x'.repeat(2 ** 16));
      await stream.send('to nobody');
      await stream.end();
      isDone = true;
    });
    const controller = new AbortController();
    const response = await fetch(url, { signal: controller.signal });
    await response.body?.getReader().read();
    controller.abort();
    await vi.waitFor(() => expect(isDone).toBe(true), 10_000);
    expect(sent).toBeGreaterThan(0);
  });
});
