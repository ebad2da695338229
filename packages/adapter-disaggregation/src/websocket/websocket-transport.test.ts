import { createServer, type Socket } from 'node:net';
import { FRAME_HEADER_BYTES, type PageTransport } from '@bufferwise/adapter-kit';
import { describePageTransport } from '@bufferwise/adapter-kit/conformance/transport';
import { FaultProxy, isReachable, LOCALHOST } from '@bufferwise-internal/services';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { manualClock } from '../manual-clock-rig.ts';
import { WebSocketTransport } from './websocket-transport.ts';
import { MAX_SOCKET_MESSAGE_BYTES } from './websocket-wire.ts';

const key = Uint8Array.from({ length: 32 }, (_, i) => i * 7);
const stream = { request: 'r', generation: 0, group: 0 };
/** Hostile clients; `BUFFERWISE_FUZZ=5000000` for a long run. */
const HOSTILE = Math.min(5000, Number(process.env.BUFFERWISE_FUZZ ?? 100_000) / 1000);
const ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const proxies: FaultProxy[] = [];
function throughProxy(transport: WebSocketTransport): PageTransport {
  const { specVersion, name, supports, limits } = transport;
  return {
    specVersion,
    name,
    supports,
    limits,
    listen: (address, options) => transport.listen(address, options),
    async connect(address, options) {
      const port = URL.canParse(address) ? Number(new URL(address).port) : 0;
      if (port === 0 || !(await isReachable(port))) return transport.connect(address, options);
      const proxy = await FaultProxy.start(port);
      proxies.push(proxy);
      return transport.connect(`ws://127.0.0.1:${proxy.port}`, options);
    },
    close: () => transport.close(),
  };
}

/** Bytes in front of what a masked frame of a WebSocket carries. */
function headBytes(frame: Buffer): number {
  const length = frame[1] & 0x7f;
  return 2 + (length === 126 ? 2 : length === 127 ? 8 : 0) + 4;
}

describePageTransport('WebSocket', {
  create: () => [new WebSocketTransport({ key }), new WebSocketTransport({ key })],
});

describePageTransport('WebSocket with TLS', {
  create: () => {
    const tls = { listen: LOCALHOST, connect: { ca: LOCALHOST.cert } };
    const far = new WebSocketTransport({ key, tls });
    return [
      new WebSocketTransport({ key, tls }),
      { ...plain(far), listen: (address, options) => far.listen(address ?? 'wss://127.0.0.1:0', options) },
    ];
  },
});

describePageTransport('WebSocket through a bad network', {
  create: () => [throughProxy(new WebSocketTransport({ key })), new WebSocketTransport({ key })],
  async destroy(pair) {
    for (const transport of pair) await transport.close();
    for (const proxy of proxies.splice(0)) await proxy.stop();
  },
  cut: () => proxies.at(-1)?.reset(),
  damageNext() {
    const proxy = proxies.at(-1) as FaultProxy;
    const change = (chunk: Buffer) => {
      proxy.fault = {};
      const changed = Buffer.from(chunk);
      changed[headBytes(chunk) + FRAME_HEADER_BYTES + 'request'.length + 1] ^= 4;
      return changed;
    };
    proxy.fault = { toServer: { change } };
  },
});

function plain(transport: WebSocketTransport): PageTransport {
  const { specVersion, name, supports, limits } = transport;
  return {
    specVersion,
    name,
    supports,
    limits,
    listen: (address, options) => transport.listen(address, options),
    connect: (address, options) => transport.connect(address, options),
    close: () => transport.close(),
  };
}

function twoTransports(near: object = {}, far: object = {}): [WebSocketTransport, WebSocketTransport] {
  const pair: [WebSocketTransport, WebSocketTransport] = [
    new WebSocketTransport({ key, ...near }),
    new WebSocketTransport({ key, ...far }),
  ];
  ends.push(...pair.map((transport) => () => transport.close()));
  return pair;
}

/** Settles with the code by which a socket was closed. */
function closed(socket: WebSocket): Promise<number> {
  return new Promise((resolve) => {
    socket.on('error', () => {});
    socket.on('close', resolve);
  });
}

describe('who has not the key', () => {
  test('gets no connection', async () => {
    const [near, far] = twoTransports({ key: new Uint8Array(32).fill(9) });
    const listener = await far.listen();
    await expect(near.connect(listener.address)).rejects.toMatchObject({ code: 'peer-not-authenticated' });
  });

  test('is cut off for a message that is longer than any transport sends, before it is read', async () => {
    const [, far] = twoTransports();
    const listener = await far.listen();
    const socket = new WebSocket(listener.address, { perMessageDeflate: false });
    const code = closed(socket);
    socket.on('open', () => socket.send(new Uint8Array(MAX_SOCKET_MESSAGE_BYTES + 1)));
    expect(await code).toBe(1009);
  });

  test('disturbs nobody, whatever it sends', async () => {
    const [near, far] = twoTransports();
    const listener = await far.listen();
    let state = 7;
    const next = (below: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return (state >>> 8) % below;
    };
    const hostile = Array.from({ length: HOSTILE }, () => {
      const socket = new WebSocket(listener.address, { perMessageDeflate: false });
      const gone = closed(socket);
      socket.on('open', () => {
        for (let messages = 1 + next(4); messages > 0; messages--) {
          const kind = next(8);
          if (kind < 2) socket.send('text');
          else if (kind < 4) socket.ping(new Uint8Array(next(125)));
          else socket.send(Uint8Array.from({ length: next(300) }, () => next(256)));
        }
        socket.send(new Uint8Array(200));
      });
      return gone;
    });
    const raw = Array.from({ length: HOSTILE / 4 }, async () => {
      const { connect } = await import('node:net');
      const socket: Socket = connect({ host: '127.0.0.1', port: Number(new URL(listener.address).port) });
      socket.on('error', () => {});
      socket.resume();
      socket.write(Uint8Array.from({ length: 1 + next(2000) }, () => next(256)));
      socket.write('\r\n\r\n');
      await new Promise((resolve) => socket.on('close', resolve));
    });
    await Promise.all([...hostile, ...raw]);
    const [here, there] = await Promise.all([near.connect(listener.address), listener.accept()]);
    await here.send({ stream, body: Uint8Array.of(5) });
    expect(await there.receive()).toMatchObject({ kind: 'message', body: Uint8Array.of(5) });
  });

  test('is told what this port is for when it does not ask for a WebSocket', async () => {
    const [, far] = twoTransports();
    const listener = await far.listen();
    expect((await fetch(listener.address.replace('ws:', 'http:'))).status).toBe(426);
  });
});

test('a path is part of an address', async () => {
  const [near, far] = twoTransports();
  const listener = await far.listen('ws://127.0.0.1:0/pages');
  expect(listener.address).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/pages$/);
  await expect(near.connect(listener.address.replace('pages', 'others'))).rejects.toMatchObject({ code: 'unknown-address' });
  await Promise.all([near.connect(listener.address), listener.accept()]);
});

test('no certificate, no wss', async () => {
  const [near, far] = twoTransports({}, { tls: { listen: LOCALHOST } });
  await expect(near.listen('wss://127.0.0.1:0')).rejects.toMatchObject({ code: 'unknown-address' });
  const listener = await far.listen('wss://127.0.0.1:0');
  // Nobody has said that this certificate is to be trusted.
  await expect(near.connect(listener.address)).rejects.toMatchObject({ code: 'unknown-address' });
});

test('a side that never becomes a WebSocket is given up in time', async () => {
  const clock = manualClock();
  const [near] = twoTransports({ clock });
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  ends.push(
    () => silent.close(),
    () => sockets.map((socket) => socket.destroy()),
  );
  const connecting = near.connect(`ws://127.0.0.1:${(silent.address() as { port: number }).port}`);
  connecting.catch(() => {});
  await expect.poll(() => sockets.length > 0 && clock.numTimers > 0).toBe(true);
  clock.advance(10_000);
  await expect(connecting).rejects.toMatchObject({ code: 'unknown-address' });
});

test('what was sent before a close arrives, however much it is, and what nobody takes waits here', async () => {
  const [near, far] = twoTransports();
  const listener = await far.listen();
  const [here, there] = await Promise.all([near.connect(listener.address), listener.accept()]);
  const sent: Promise<void>[] = [];
  for (let page = 0; page < 12; page++)
    sent.push(here.sendPages({ stream, firstPage: page, bytes: new Uint8Array(1 << 20).fill(page) }));
  await sent[3];
  expect(here.bytesInFlight).toBe(4 << 20);
  for (let page = 0; page < 12; page++) {
    if (page === 9) {
      await Promise.all(sent);
      void here.close();
    }
    const received = await there.receive();
    expect(received).toMatchObject({ kind: 'pages', firstPage: page });
    expect(received.kind === 'pages' && received.bytes.every((byte) => byte === page)).toBe(true);
  }
  await expect(there.receive()).rejects.toMatchObject({ code: 'peer-lost' });
});

test.each(['', '127.0.0.1:80', 'http://127.0.0.1:80', 'ws://', 'ws://a b', 'ws://127.0.0.1:99999'])(
  '%s is no address',
  async (address) => {
    const [near] = twoTransports();
    await expect(near.connect(address)).rejects.toMatchObject({ code: 'unknown-address' });
    await expect(near.listen(address)).rejects.toMatchObject({ code: 'unknown-address' });
  },
);
