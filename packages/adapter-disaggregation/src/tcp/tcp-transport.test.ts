import { createServer, type Socket } from 'node:net';
import { FRAME_HEADER_BYTES, type PageTransport } from '@bufferwise/adapter-kit';
import { describePageTransport } from '@bufferwise/adapter-kit/conformance/transport';
import { FaultProxy, isReachable } from '@bufferwise-internal/services';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type ManualClock, manualClock } from '../manual-clock-rig.ts';
import { TcpTransport } from './tcp-transport.ts';

const key = Uint8Array.from({ length: 32 }, (_, i) => i * 7);
const stream = { request: 'r', generation: 0, group: 0 };
const ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const proxies: FaultProxy[] = [];
const portOf = (address: string) => Number(address.split(':').at(-1));

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
      const port = portOf(address);
      if (!(await isReachable(port))) return transport.connect(address, options);
      const proxy = await FaultProxy.start(port);
      proxies.push(proxy);
      return transport.connect(`127.0.0.1:${proxy.port}`, options);
    },
    close: () => transport.close(),
  };
}

describePageTransport('TCP', { create: () => [new TcpTransport({ key }), new TcpTransport({ key })] });

describePageTransport('TCP through a bad network', {
  create: () => [throughProxy(new TcpTransport({ key })), new TcpTransport({ key })],
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
      changed[FRAME_HEADER_BYTES + 'request'.length + 1] ^= 4;
      return changed;
    };
    proxy.fault = { toServer: { change } };
  },
});

/** Two transports, with what is said of either. */
function twoTransports(near: object = {}, far: object = {}): [TcpTransport, TcpTransport] {
  const pair: [TcpTransport, TcpTransport] = [new TcpTransport({ key, ...near }), new TcpTransport({ key, ...far })];
  ends.push(() => Promise.all(pair.map((each) => each.close())));
  return pair;
}

/** A network in front of a listener, and the address that leads through it. */
async function proxyTo(address: string): Promise<[FaultProxy, string]> {
  const proxy = await FaultProxy.start(portOf(address));
  ends.push(() => proxy.stop());
  return [proxy, `127.0.0.1:${proxy.port}`];
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
    const [proxy, through] = await proxyTo(listener.address);
    const sent: Buffer[] = [];
    const change = (chunk: Buffer) => {
      sent.push(chunk);
      return chunk;
    };
    proxy.fault = { toServer: { change } };
    await near.connect(through);
    await listener.accept();
    expect(Buffer.concat(sent).includes(Buffer.from(key))).toBe(false);
    // The same bytes again, in the same order: the other side's nonce is a new one.
    const replayed = await new Promise<number>((resolve) => {
      let came = 0;
      const port = portOf(listener.address);
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
      const [proxy, through] = await proxyTo(listener.address);
      const [here, there] = await Promise.all([near.connect(through), listener.accept()]);
      proxy.fault = { toServer: { change: change === 'repeat' ? repeated : forged } };
      await here.send({ stream, body: Uint8Array.of(1) });
      if (change === 'repeat') expect(await there.receive()).toMatchObject({ kind: 'message' });
      await expect(there.receive()).rejects.toMatchObject({ code: 'peer-lost', message: expect.stringContaining('seal') });
    }
  });
});

const repeated = (chunk: Buffer) => Buffer.concat([chunk, chunk]);

/** One bit of the seal is another: all sums of the frame hold. */
function forged(chunk: Buffer): Buffer {
  const changed = Buffer.from(chunk);
  changed[changed.length - 1] ^= 1;
  return changed;
}

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
    const [proxy, through] = await proxyTo(listener.address);
    proxy.fault = { silent: true };
    const dropped = near.connect(through);
    dropped.catch(() => {});
    await vi.waitUntil(() => clock.numTimers >= 2, 30_000);
    clock.advance(10_000);
    await expect(dropped).rejects.toMatchObject({ code: 'peer-lost' });
  });

  test('is ended when it sends too much before it greeted', async () => {
    const [, far] = twoTransports();
    const listener = await far.listen();
    const { connect } = await import('node:net');
    const socket = connect({ host: '127.0.0.1', port: portOf(listener.address) });
    socket.on('error', () => {});
    socket.write(new Uint8Array(1 << 20));
    await new Promise((resolve) => socket.on('close', resolve));
  });

  test('is lost when nothing comes from it any more, and is not while it only has nothing to say', async () => {
    const clock = manualClock();
    const times = { clock, peerTimeoutMs: 15_000, heartbeatMs: 5000 };
    const [near, far] = twoTransports(times, times);
    const listener = await far.listen();
    const [proxy, through] = await proxyTo(listener.address);
    const [here, there] = await Promise.all([near.connect(through), listener.accept()]);
    const passed = { toServer: 0, toClient: 0 };
    const counted = (way: keyof typeof passed) => ({
      change(chunk: Buffer) {
        passed[way]++;
        return chunk;
      },
    });
    proxy.fault = { toServer: counted('toServer'), toClient: counted('toClient') };
    for (let beat = 0; beat < 8; beat++) {
      const before = { ...passed };
      clock.advance(times.heartbeatMs);
      await vi.waitUntil(() => passed.toServer > before.toServer && passed.toClient > before.toClient, 30_000);
    }
    await here.send({ stream, body: Uint8Array.of(1) });
    expect(await there.receive()).toMatchObject({ kind: 'message' });
    proxy.fault = { toServer: { change: () => undefined } };
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
