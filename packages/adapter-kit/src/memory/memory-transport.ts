import { CallGate } from '../call-gate.ts';
import { AdapterError } from '../errors.ts';
import type { CallOptions } from '../plugin.ts';
import { decodeFrame, encodeFrame, FRAME_HEADER_BYTES, MAX_REQUEST_BYTES } from '../transport/frame.ts';
import type {
  PageConnection,
  PageListener,
  PageTransport,
  PageTransportLimits,
  Received,
  TransferMessage,
  TransferPages,
} from '../transport/page-transport.ts';

/** What several memory transports meet on: listeners by address. */
export class MemoryNetwork {
  /** @internal */
  readonly listeners = new Map<string, { connect(from: MemoryConnection): MemoryConnection }>();
  /** Changes a frame on its way, as a bad network does; null loses it, and the connection with it. */
  disturb: (frame: Uint8Array) => Uint8Array | null = (frame) => frame;
  #next = 0;

  /** An address that nobody listens on. */
  freeAddress(): string {
    for (;;) {
      const address = `memory:${this.#next++}`;
      if (!this.listeners.has(address)) return address;
    }
  }
}

const LIMITS: PageTransportLimits = { maxMessageBytes: 1 << 16, maxPagesBytes: 1 << 20, windowBytes: 4 << 20 };

/** Frames in lists, encoded as on a wire: for tests, and the reference for all other transports. */
export class MemoryTransport implements PageTransport {
  readonly specVersion = 'v1';
  readonly name = 'memory transport';
  readonly supports = { flowControl: true, damageReports: true } as const;
  readonly limits: PageTransportLimits = LIMITS;
  readonly #gate = new CallGate(this.name);
  readonly #network: MemoryNetwork;
  readonly #open = new Set<{ close(): Promise<void> }>();

  constructor(network: MemoryNetwork = new MemoryNetwork()) {
    this.#network = network;
  }

  listen(address?: string, options?: CallOptions): Promise<PageListener> {
    return this.#gate.run(options, () => {
      const listener = new MemoryListener(this.#network, address ?? this.#network.freeAddress(), (connection) =>
        this.#open.add(connection),
      );
      this.#open.add(listener);
      return listener;
    });
  }

  connect(address: string, options?: CallOptions): Promise<PageConnection> {
    return this.#gate.run(options, () => {
      const listener = this.#network.listeners.get(address);
      if (listener === undefined)
        throw new AdapterError('unknown-address', `${this.name}: nobody listens on ${address}; start the other side first`);
      const connection = new MemoryConnection(this.#network);
      connection.peer = listener.connect(connection);
      this.#open.add(connection);
      return connection;
    });
  }

  close(): Promise<void> {
    return this.#gate.close(async () => {
      for (const each of this.#open) await each.close();
    });
  }
}

class MemoryListener implements PageListener {
  readonly address: string;
  readonly #network: MemoryNetwork;
  readonly #gate = new CallGate('memory listener');
  readonly #waiting: MemoryConnection[] = [];
  #wake = () => {};

  constructor(network: MemoryNetwork, address: string, opened: (connection: MemoryConnection) => void) {
    if (network.listeners.has(address))
      throw new AdapterError(
        'unknown-address',
        `memory transport: ${address} is taken; listen elsewhere, or leave the address out`,
      );
    this.address = address;
    this.#network = network;
    network.listeners.set(address, {
      connect: (from) => {
        const connection = new MemoryConnection(network);
        connection.peer = from;
        opened(connection);
        this.#waiting.push(connection);
        this.#wake();
        return connection;
      },
    });
  }

  accept(options?: CallOptions): Promise<PageConnection> {
    return this.#gate.run(options, async () => {
      const stopped = this.#gate.interruption(options);
      try {
        while (this.#waiting.length === 0) {
          await Promise.race([
            new Promise<void>((resolve) => {
              this.#wake = resolve;
            }),
            stopped.promise,
          ]);
        }
        return this.#waiting.shift() as MemoryConnection;
      } finally {
        stopped.release();
      }
    });
  }

  close(): Promise<void> {
    this.#network.listeners.delete(this.address);
    return this.#gate.close(async () => {
      for (const connection of this.#waiting) await connection.close();
    });
  }
}

/** One end of a connection. */
class MemoryConnection implements PageConnection {
  /** The other end; null when it is gone. */
  peer: MemoryConnection | null = null;
  bytesInFlight = 0;
  readonly #network: MemoryNetwork;
  readonly #gate = new CallGate('memory connection');
  /** What came and was not received. */
  readonly #arrived: (Received & { pagesBytes?: number })[] = [];
  /** Up to which generation of a request nothing is of use any more. */
  readonly #retired = new Map<string, number>();
  /** Sends run one after the other, in the order of the calls. */
  #lastSend: Promise<unknown> = Promise.resolve();
  #wakeReceiver = () => {};
  #wakeSender = () => {};

  constructor(network: MemoryNetwork) {
    this.#network = network;
  }

  send({ stream, body }: TransferMessage, options?: CallOptions): Promise<void> {
    return this.#gate.run(options, () =>
      this.#inOrder(async () => {
        options?.signal?.throwIfAborted();
        if (this.#isRetired(stream.request, stream.generation)) return;
        this.#deliver(encodeFrame({ kind: 'message', stream, index: 0, body }));
      }),
    );
  }

  sendPages({ stream, firstPage, bytes }: TransferPages, options?: CallOptions): Promise<void> {
    return this.#gate.run(options, () =>
      this.#inOrder(async () => {
        const stopped = this.#gate.interruption(options);
        try {
          while (this.peer !== null && this.bytesInFlight + bytes.length > LIMITS.windowBytes) {
            await Promise.race([
              new Promise<void>((resolve) => {
                this.#wakeSender = resolve;
              }),
              stopped.promise,
            ]);
          }
          options?.signal?.throwIfAborted();
        } finally {
          stopped.release();
        }
        if (this.#isRetired(stream.request, stream.generation)) return;
        this.bytesInFlight += bytes.length;
        this.#deliver(encodeFrame({ kind: 'pages', stream, index: firstPage, body: bytes }));
      }),
    );
  }

  receive(options?: CallOptions): Promise<Received> {
    return this.#gate.run(options, async () => {
      const stopped = this.#gate.interruption(options);
      try {
        for (;;) {
          const next = this.#arrived.shift();
          if (next !== undefined) {
            const { pagesBytes = 0, ...received } = next;
            this.peer?.credit(pagesBytes);
            if (!this.#isDropped(received)) return received as Received;
            continue;
          }
          if (this.peer === null) throw this.#peerLost();
          await Promise.race([
            new Promise<void>((resolve) => {
              this.#wakeReceiver = resolve;
            }),
            stopped.promise,
          ]);
        }
      } finally {
        stopped.release();
      }
    });
  }

  abort(request: string, generation: number, reason: string): Promise<void> {
    return this.#gate.run(undefined, () => {
      this.retire(request, generation);
      this.#deliver(
        encodeFrame({
          kind: 'abort',
          stream: { request, generation, group: 0 },
          index: 0,
          body: new TextEncoder().encode(reason),
        }),
      );
    });
  }

  retire(request: string, generation: number): void {
    this.#retired.set(request, Math.max(generation, this.#retired.get(request) ?? -1));
  }

  close(): Promise<void> {
    const { peer } = this;
    this.peer = null;
    this.#wakeSender();
    this.#wakeReceiver();
    peer?.lose();
    return this.#gate.close();
  }

  /** The other side has taken so many bytes of pages. */
  credit(bytes: number): void {
    this.bytesInFlight -= bytes;
    this.#wakeSender();
  }

  /** The other side is gone. */
  lose(): void {
    this.peer = null;
    this.bytesInFlight = 0;
    this.#wakeSender();
    this.#wakeReceiver();
  }

  /** Takes a frame off the wire. */
  arrive(frame: Uint8Array, pagesBytes: number): void {
    const decoded = decodeFrame(frame, LIMITS.windowBytes);
    if (decoded === null || decoded.damaged) {
      this.#arrived.push({ kind: 'damaged', pagesBytes });
    } else if (decoded.kind === 'abort') {
      const { request, generation } = decoded.stream;
      this.retire(request, generation);
      this.#arrived.push({ kind: 'aborted', request, generation, reason: new TextDecoder().decode(decoded.body) });
    } else if (decoded.kind === 'pages') {
      this.#arrived.push({
        kind: 'pages',
        stream: decoded.stream,
        firstPage: decoded.index,
        bytes: decoded.body.slice(),
        pagesBytes,
      });
    } else {
      this.#arrived.push({ kind: 'message', stream: decoded.stream, body: decoded.body.slice() });
    }
    this.#wakeReceiver();
  }

  #deliver(frame: Uint8Array): void {
    const { peer } = this;
    if (peer === null) throw this.#peerLost();
    const pagesBytes =
      decodeFrame(frame, LIMITS.windowBytes)?.kind === 'pages' ? frame.length - FRAME_HEADER_BYTES - nameBytes(frame) : 0;
    const moved = this.#network.disturb(frame);
    if (moved === null) {
      this.lose();
      peer.lose();
      throw this.#peerLost();
    }
    peer.arrive(moved, pagesBytes);
  }

  #isRetired(request: string, generation: number): boolean {
    return generation <= (this.#retired.get(request) ?? -1);
  }

  #isDropped(received: Received): boolean {
    return 'stream' in received && this.#isRetired(received.stream.request, received.stream.generation);
  }

  #inOrder<T>(call: () => Promise<T>): Promise<T> {
    const result = this.#lastSend.then(call);
    this.#lastSend = result.catch(() => {});
    return result;
  }

  #peerLost(): AdapterError {
    return new AdapterError('peer-lost', 'memory connection: the other side is gone; connect again, with a new generation');
  }
}

function nameBytes(frame: Uint8Array): number {
  return Math.min(MAX_REQUEST_BYTES, frame[6] | (frame[7] << 8));
}

/** Two transports that reach each other, and nobody else. */
export function memoryTransportPair(network: MemoryNetwork = new MemoryNetwork()): [MemoryTransport, MemoryTransport] {
  return [new MemoryTransport(network), new MemoryTransport(network)];
}
