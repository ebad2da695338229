import { Worker } from 'node:worker_threads';
import { FRAME_HEADER_BYTES, type PageTransport } from '@bufferwise/adapter-kit';
import { describePageTransport } from '@bufferwise/adapter-kit/conformance/transport';
import { expect, test } from 'vitest';
import { MessagePortTransport } from './message-port-transport.ts';

const key = new Uint8Array(16).fill(3);

/** Bytes on their way from the side that connects; what comes back goes over instead. */
type Disturb = (bytes: Uint8Array) => Uint8Array;

/** Stands between two meeting ports, and between the ends of each connection that is made over them. */
class Relay {
  readonly near: MessagePort;
  readonly far: MessagePort;
  disturb: Disturb = (bytes) => bytes;
  readonly #ports: MessagePort[] = [];

  constructor() {
    const left = new MessageChannel();
    const right = new MessageChannel();
    this.near = left.port1;
    this.far = right.port2;
    this.#ports.push(left.port1, left.port2, right.port1, right.port2);
    left.port2.onmessage = ({ data }) => {
      const channel = new MessageChannel();
      const inner = channel.port1;
      this.#ports.push(inner, data.port);
      inner.onmessage = (event) => data.port.postMessage(event.data);
      data.port.onmessage = (event: MessageEvent) =>
        inner.postMessage(event.data instanceof Uint8Array ? this.disturb(event.data) : event.data);
      right.port1.postMessage({ ...data, port: channel.port2 }, [channel.port2]);
    };
  }

  cut(): void {
    for (const port of this.#ports) port.close();
  }
}

const open: { near: MessagePort; far: MessagePort; cut(): void }[] = [];

async function destroy(pair: readonly [PageTransport, PageTransport]): Promise<void> {
  for (const transport of pair) await transport.close();
  for (const each of open.splice(0)) each.cut();
}

function meeting() {
  const { port1, port2 } = new MessageChannel();
  const ends = {
    near: port1,
    far: port2,
    cut: () => {
      port1.close();
      port2.close();
    },
  };
  open.push(ends);
  return ends;
}

function pairOver({ near, far }: { near: MessagePort; far: MessagePort }, options: { key?: Uint8Array }) {
  return [new MessagePortTransport({ port: near, ...options }), new MessagePortTransport({ port: far, ...options })] as const;
}

describePageTransport('message port', { create: () => pairOver(meeting(), {}), destroy });
describePageTransport('message port with a key', { create: () => pairOver(meeting(), { key }), destroy });

let relay: Relay;
describePageTransport('message port through a relay', {
  create() {
    relay = new Relay();
    open.push(relay);
    return pairOver(relay, { key });
  },
  destroy,
  cut: () => relay.cut(),
  damageNext() {
    relay.disturb = (bytes) => {
      relay.disturb = (other) => other;
      const changed = bytes.slice();
      changed[FRAME_HEADER_BYTES + 'request'.length + 1] ^= 4;
      return changed;
    };
  },
});

test('one side with a key and one without, or with another, do not meet', async () => {
  for (const other of [{}, { key: new Uint8Array(16).fill(4) }]) {
    const { near, far } = meeting();
    const transports = [
      new MessagePortTransport({ port: near, key }),
      new MessagePortTransport({ port: far, ...other }),
    ] as const;
    const listener = await transports[1].listen('here');
    await expect(transports[0].connect('here')).rejects.toMatchObject({
      code: expect.stringMatching(/peer-(not-authenticated|lost)/),
    });
    await listener.close();
    await destroy(transports);
  }
});

test('what else passes the port disturbs nothing', async () => {
  const { near, far } = meeting();
  const transports = pairOver({ near, far }, {});
  const listener = await transports[1].listen();
  for (const message of [null, 7, 'connect', { bufferwise: 'connect' }, { bufferwise: 'connect', address: 1, port: {} }])
    near.postMessage(message);
  const [connection] = await Promise.all([transports[0].connect(listener.address), listener.accept()]);
  await connection.close();
  await destroy(transports);
});

test('a thread of Node that ends is lost', async () => {
  const { port1, port2 } = new MessageChannel();
  const transport = new MessagePortTransport({ port: port1 });
  const listener = await transport.listen('main');
  // A thread that knows the wire form and no library: it invites, greets, and leaves in the middle.
  const worker = new Worker(
    `const { workerData } = require('node:worker_threads');
     const { port1, port2 } = new MessageChannel();
     const hello = Buffer.alloc(52);
     hello.writeUInt32LE(0x4b4c5742, 0); hello[4] = 1;
     for (const at of [8, 12, 16]) hello.writeUInt32LE(1000, at);
     port1.onmessage = ({ data }) => {
       if (data === 'welcome') port1.postMessage(new Uint8Array(hello));
       else if (data instanceof Uint8Array && data.length === 1) process.exit(0);
     };
     workerData.postMessage({ bufferwise: 'connect', address: 'main', port: port2 }, [port2]);`,
    { eval: true, workerData: port2, transferList: [port2] as never },
  );
  const connection = await listener.accept();
  await expect(connection.receive()).rejects.toMatchObject({ code: 'peer-lost' });
  await worker.terminate();
  await transport.close();
  port1.close();
});
