import { afterEach, expect, inject, test } from 'vitest';
import { WebSocketTransport } from './websocket-transport.ts';

/** A worker in Node that sends back what comes. */
declare module 'vitest' {
  interface ProvidedContext {
    webSocketPeer: { address: string; key: number[] };
  }
}

const { address, key } = inject('webSocketPeer');
const stream = { request: 'r', generation: 0, group: 0 };
const open: WebSocketTransport[] = [];

function transportOf(options: object = {}): WebSocketTransport {
  const transport = new WebSocketTransport({ key: Uint8Array.from(key), ...options });
  open.push(transport);
  return transport;
}

afterEach(async () => {
  for (const transport of open.splice(0)) await transport.close();
});

test('a browser and a worker in Node exchange messages and pages, more than a window of them, in order', async () => {
  const connection = await transportOf().connect(address);
  const pages = Array.from({ length: 10 }, (_, i) => new Uint8Array(1 << 20).fill(i));
  const sent = (async () => {
    for (const [firstPage, bytes] of pages.entries()) await connection.sendPages({ stream, firstPage, bytes });
    await connection.send({ stream, body: Uint8Array.of(1, 2, 3) });
  })();
  for (const [firstPage, bytes] of pages.entries()) {
    const received = await connection.receive();
    expect(received).toMatchObject({ kind: 'pages', stream, firstPage });
    if (received.kind === 'pages') expect(received.bytes.every((byte, at) => byte === bytes[at])).toBe(true);
  }
  expect(await connection.receive()).toEqual({ kind: 'message', stream, body: Uint8Array.of(1, 2, 3) });
  await sent;
});

test('an abort reaches the worker, and nothing of what was given up comes back', async () => {
  const connection = await transportOf().connect(address);
  await connection.abort('r', 4, 'enough');
  const heard = await connection.receive();
  expect(heard.kind === 'message' && new TextDecoder().decode(heard.body)).toBe('r 4 enough');
});

test('who has another key gets no connection', async () => {
  await expect(transportOf({ key: new Uint8Array(32) }).connect(address)).rejects.toMatchObject({
    code: 'peer-not-authenticated',
  });
});

test('nobody there is an error of its own, and so is listening', async () => {
  await expect(transportOf().connect('ws://127.0.0.1:1/')).rejects.toMatchObject({ code: 'unknown-address' });
  await expect(transportOf().listen()).rejects.toMatchObject({ code: 'unsupported-call' });
});
