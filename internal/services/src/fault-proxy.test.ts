import { once } from 'node:events';
import { createConnection, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FaultProxy } from './fault-proxy.ts';

describe('a network between two sides', () => {
  let proxy: FaultProxy;
  let client: Socket;
  let came: string;
  let back: string;
  const ends: (() => unknown)[] = [];
  beforeEach(async () => {
    came = '';
    back = '';
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (bytes) => {
        came += bytes;
        socket.write(`<${bytes}>`);
      });
      socket.on('end', () => socket.end('bye'));
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    proxy = await FaultProxy.start((server.address() as { port: number }).port);
    client = createConnection({ port: proxy.port, host: '127.0.0.1' });
    client.on('error', () => {});
    client.on('data', (bytes) => {
      back += bytes;
    });
    await once(client, 'connect');
    ends.push(
      () => client.destroy(),
      () => proxy.stop(),
      () => server.close(),
    );
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });
  const say = async (text: string) => {
    client.write(text);
    await vi.waitUntil(() => came.endsWith(text), 30_000);
  };

  it('passes everything on, and the ends of both, where it is good', async () => {
    await say('a');
    client.end();
    await once(client, 'close');
    expect([came, back]).toEqual(['a', '<a>bye']);
  });

  it('keeps the order of what comes late when it gets better meanwhile', async () => {
    proxy.fault = { toClient: { delayMs: 100 } };
    await say('late');
    proxy.fault = {};
    await say('soon');
    await vi.waitUntil(() => back.length >= 12, 30_000);
    expect(back).toBe('<late><soon>');
  });

  it('holds what comes, an end too, until it is good again', async () => {
    proxy.fault = { toClient: { hold: true } };
    await say('a');
    await say('b');
    client.end();
    await vi.waitUntil(() => came === 'ab', 30_000);
    expect(back).toBe('');
    proxy.fault = {};
    await once(client, 'close');
    expect(back).toMatch(/^(<a><b>|<ab>)bye$/);
  });

  it('changes, loses and cuts what goes one way', async () => {
    proxy.fault = {
      toClient: { change: (bytes) => (bytes.includes('lost') ? undefined : Buffer.from(`${bytes}`.toUpperCase())) },
    };
    await say('lost');
    await say('kept');
    await vi.waitUntil(() => back === '<KEPT>', 30_000);
    proxy.fault = { toClient: { cutAfterBytes: 8 } };
    client.write('cut off');
    await once(client, 'close');
    expect(back).toBe('<KEPT><c');
  });

  it('resets', async () => {
    await say('a');
    proxy.reset();
    await expect(once(client, 'close')).rejects.toMatchObject({ code: 'ECONNRESET' });
  });
});
