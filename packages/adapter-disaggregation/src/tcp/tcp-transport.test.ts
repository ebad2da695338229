import { createServer, type Socket } from 'node:net';
import { FRAME_HEADER_BYTES, type PageTransport } from '@bufferwise/adapter-kit';
import { describePageTransport } from '@bufferwise/adapter-kit/conformance/transport';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type ManualClock, manualClock } from '../manual-clock-rig.ts';
import { isReachable, type TcpProxy, tcpProxy } from './tcp-proxy-rig.ts';
import { TcpTransport } from './tcp-transport.ts';

const key = Uint8Array.from({ length: 32 }, (_, i) => i * 7);
const stream = { request: 'r', generation: 0, group: 0 };
const ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const proxies: TcpProxy[] = [];
/** Connects through a proxy. */
function throughProxy(transport: TcpTransport): PageTransport {
  const { specVersion, name, supports, limits } = transport;
  return {
    specVersion,
    name,
    supports,
    limits,
    listen: (address, options) => transport.listen(address, options),
    async connect(address, options) {
      if (!(await isReachable(address))) return transport.connect(address, options);
      const proxy = await tcpProxy(address);
      proxies.push(proxy);
      return transport.connect(proxy.address, options);
    },
    close: () => transport.close(),
  };
}

describePageTransport('TCP', { create: () => [new TcpTransport({ key }), new TcpTransport({ key })] });

describePageTransport('TCP through a bad network', {
  create: () => [throughProxy(new TcpTransport({ key })), new TcpTransport({ key })],
  async destroy(pair) {
    for (const transport of pair) await transport.close();
    for (const proxy of proxies.splice(0)) proxy.close();
  },
  cut: () => proxies.at(-1)?.cut(),
  damageNext() {
    const proxy = proxies.at(-1) as TcpProxy;
    proxy.toListener = (chunk) => {
      proxy.toListener = (other) => other;
      const changed = Buffer.from(chunk);
      changed[FRAME_HEADER_BYTES + 'request'.length + 1] ^= 4;
      return changed;
    };
  },
});

/** Two transports, with what is said of either. */
function twoTransports(near: object = {}, far: object = {}): [TcpTransport, TcpTransport] {
  const pair: [TcpTransport, TcpTransport] = [new TcpTransport({ key, ...near }), new TcpTransport({ key, ...far })];
  ends.push(() => Promise.all(pair.map((each) => each.close())));
  return pair;
}

async function proxyTo(address: string): Promise<TcpProxy> {
  const proxy = await tcpProxy(address);
  ends.push(() => proxy.close());
  return proxy;
}

/** Lets time go by until a promise has settled, however many turns it takes. */
async function endedByTime(clock: ManualClock, promise: Promise<unknown>): Promise<void> {
  let settled = false;
  const settle = () => {
    settled = true;
  };
  promise.then(settle, settle);
  await vi.waitUntil(() => {
    clock.advance(1000);
    return settled;
  }, 30_000);
}

describe('who has not the key', () => {
  test('is told so, and never reaches the other side', async () => {
    const [near, far] = twoTransports({ key: key.map((byte) => byte ^ 1) });
    const listener = await far.listen();
    await expect(near.connect(listener.address)).rejects.toMatchObject({ code: 'peer-not-authenticated' });
    // The first one that is accepted is one that came later and has it.
    const [other] = twoTransports();
    const [here, there] = await Promise.all([other.connect(listener.address), listener.accept()]);
    await here.send({ stream, body: Uint8Array.of(7) });
    expect(await there.receive()).toMatchObject({ kind: 'message', body: Uint8Array.of(7) });
  });

  test('learns nothing of the key from what travels, and cannot play it again', async () => {
    const [near, far] = twoTransports();
    const listener = await far.listen();
    const proxy = await proxyTo(listener.address);
    const sent: Buffer[] = [];
    proxy.toListener = (chunk) => {
      sent.push(chunk);
      return chunk;
    };
    await near.connect(proxy.address);
    await listener.accept();
    expect(Buffer.concat(sent).includes(Buffer.from(key))).toBe(false);
    // The same bytes again, in the same order: the other side's nonce is a new one.
    const replayed = await new Promise<number>((resolve) => {
      let came = 0;
      const port = Number(listener.address.split(':')[1]);
      import('node:net').then(({ connect }) => {
        const socket = connect({ host: '127.0.0.1', port }, () => {
          for (const chunk of sent) socket.write(chunk);
        });
        socket.on('data', (chunk) => {
          came += chunk.length;
        });
        socket.on('close', () => resolve(came));
      });
    });
    expect(replayed).toBe(52 + 32); // hello and proof, no welcome
  });

  test('cannot change or repeat a frame: the connection ends', async () => {
    for (const change of ['repeat', 'forge'] as const) {
      const [near, far] = twoTransports();
      const listener = await far.listen();
      const proxy = await proxyTo(listener.address);
      const [here, there] = await Promise.all([near.connect(proxy.address), listener.accept()]);
      proxy.toListener = (chunk) => {
        if (change === 'repeat') return Buffer.concat([chunk, chunk]);
        const forged = Buffer.from(chunk);
        forged[forged.length - 1] ^= 1; // of the seal: all sums of the frame hold
        return forged;
      };
      await here.send({ stream, body: Uint8Array.of(1) });
      if (change === 'repeat') expect(await there.receive()).toMatchObject({ kind: 'message' });
      await expect(there.receive()).rejects.toMatchObject({ code: 'peer-lost', message: expect.stringContaining('seal') });
    }
  });
});

describe('a side that is no good', () => {
  test('is ended when it does not greet in time, on both sides', async () => {
    const clock = manualClock();
    const [near, far] = twoTransports({ clock }, { clock });
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    ends.push(
      () => silent.close(),
      () => sockets.map((socket) => socket.destroy()),
    );
    const connecting = near.connect(`127.0.0.1:${(silent.address() as { port: number }).port}`);
    connecting.catch(() => {});
    await vi.waitUntil(() => sockets.length > 0, 30_000);
    await vi.waitUntil(() => clock.numTimers > 0, 30_000);
    await endedByTime(clock, connecting);
    await expect(connecting).rejects.toMatchObject({ code: 'peer-lost' });

    const listener = await far.listen();
    const proxy = await proxyTo(listener.address);
    proxy.toListener = () => null;
    const dropped = near.connect(proxy.address);
    dropped.catch(() => {});
    await vi.waitUntil(() => clock.numTimers >= 2, 30_000);
    clock.advance(10_000);
    await expect(dropped).rejects.toMatchObject({ code: 'peer-lost' });
  });

  test('is ended when it sends too much before it greeted', async () => {
    const [, far] = twoTransports();
    const listener = await far.listen();
    const { connect } = await import('node:net');
    const socket = connect({ host: '127.0.0.1', port: Number(listener.address.split(':')[1]) });
    socket.on('error', () => {});
    socket.write(new Uint8Array(1 << 20));
    await new Promise((resolve) => socket.on('close', resolve));
  });

  test('is lost when nothing comes from it any more, and is not while it only has nothing to say', async () => {
    const clock = manualClock();
    const times = { clock, peerTimeoutMs: 15_000, heartbeatMs: 5000 };
    const [near, far] = twoTransports(times, times);
    const listener = await far.listen();
    const proxy = await proxyTo(listener.address);
    const [here, there] = await Promise.all([near.connect(proxy.address), listener.accept()]);
    const passed = { toListener: 0, fromListener: 0 };
    for (const way of ['toListener', 'fromListener'] as const)
      proxy[way] = (chunk) => {
        passed[way]++;
        return chunk;
      };
    for (let beat = 0; beat < 8; beat++) {
      const before = { ...passed };
      clock.advance(times.heartbeatMs);
      await vi.waitUntil(() => passed.toListener > before.toListener && passed.fromListener > before.fromListener, 30_000);
    }
    await here.send({ stream, body: Uint8Array.of(1) });
    expect(await there.receive()).toMatchObject({ kind: 'message' });
    proxy.toListener = () => null;
    const waiting = there.receive();
    waiting.catch(() => {});
    await endedByTime(clock, waiting);
    await expect(waiting).rejects.toMatchObject({ code: 'peer-lost', message: expect.stringContaining('nothing came') });
  });
});

test('what was sent before a close arrives, however much it is', async () => {
  const [near, far] = twoTransports();
  const listener = await far.listen();
  const [here, there] = await Promise.all([near.connect(listener.address), listener.accept()]);
  for (let page = 0; page < 4; page++)
    await here.sendPages({ stream, firstPage: page, bytes: new Uint8Array(1 << 20).fill(page) });
  const closing = here.close();
  for (let page = 0; page < 4; page++) {
    const received = await there.receive();
    expect(received).toMatchObject({ kind: 'pages', firstPage: page });
    expect(received.kind === 'pages' && received.bytes.every((byte) => byte === page)).toBe(true);
  }
  await closing;
  await expect(there.receive()).rejects.toMatchObject({ code: 'peer-lost' });
});

test('an abort does not wait behind pages of other requests that have no room', async () => {
  const [near, far] = twoTransports({}, { limits: { maxPagesBytes: 1000, windowBytes: 1000 } });
  const listener = await far.listen();
  const [here, there] = await Promise.all([near.connect(listener.address), listener.accept()]);
  await here.sendPages({ stream, firstPage: 0, bytes: new Uint8Array(1000) });
  const waiting = here.sendPages({ stream, firstPage: 1, bytes: new Uint8Array(1000) });
  await here.abort('other', 3, 'gone');
  expect(await there.receive()).toMatchObject({ kind: 'pages', firstPage: 0 });
  expect(await there.receive()).toMatchObject({ kind: 'aborted', request: 'other', generation: 3 });
  await waiting;
  await expect(here.sendPages({ stream, firstPage: 2, bytes: new Uint8Array(1001) })).rejects.toMatchObject({
    code: 'message-too-large',
  });
});

test('options that cannot be are refused', () => {
  const refused = { code: 'invalid-transport-options' };
  expect(() => new TcpTransport({ key: new Uint8Array(15) })).toThrowError(expect.objectContaining(refused));
  expect(() => new TcpTransport({ key: new Uint8Array(16) })).not.toThrow();
  expect(() => new TcpTransport({ key, limits: { maxPagesBytes: 100, windowBytes: 99 } })).toThrowError(
    expect.objectContaining(refused),
  );
  expect(() => new TcpTransport({ key, peerTimeoutMs: 10, heartbeatMs: 10 })).toThrowError(expect.objectContaining(refused));
});
