import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net';

/** What becomes of the bytes that go one way. */
export interface WayFault {
  /** What becomes of a piece of the stream, as the network cut it; null ends the connection after nothing of it, undefined drops it. */
  readonly change?: (bytes: Buffer) => Buffer | null | undefined;
  /** Ends the connection after so many bytes of this way, counted from its beginning. */
  readonly cutAfterBytes?: number;
  /** Milliseconds by which every piece comes later. */
  readonly delayMs?: number;
  /** Keeps what comes, and passes it on once this is over. */
  readonly hold?: boolean;
}

/** What a proxy does to connections; `{}` is a good network. */
export interface Fault {
  readonly toServer?: WayFault;
  readonly toClient?: WayFault;
  /** Takes connections, and swallows all that either side says. */
  readonly silent?: boolean;
  /** Ends every connection at once. */
  readonly refuse?: boolean;
}

/** A network between a client and a server on this machine that can be made a bad one. */
export class FaultProxy {
  readonly #server: Server;
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  readonly #ways = new Set<Way>();
  #fault: Fault = {};

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#serve(socket));
  }

  /** @param target port of the server */
  static async start(target: number): Promise<FaultProxy> {
    const proxy = new FaultProxy(target);
    await new Promise<void>((resolve) => void proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Replaces the fault, for open connections, too. What is on its way already keeps its delay, and its place before what comes. */
  set fault(fault: Fault) {
    this.#fault = fault;
    for (const way of this.#ways) way.pass();
  }

  /** Resets all connections. */
  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async stop(): Promise<void> {
    this.reset();
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()));
  }

  #serve(client: Socket): void {
    if (this.#fault.refuse) {
      client.resetAndDestroy();
      return;
    }
    const server = createConnection({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true });
    const there = () => (this.#fault.silent ? SILENT : (this.#fault.toServer ?? {}));
    const back = () => (this.#fault.silent ? SILENT : (this.#fault.toClient ?? {}));
    for (const [from, to, fault] of [
      [client, server, there],
      [server, client, back],
    ] as const) {
      const way = new Way(from, to, fault);
      this.#ways.add(way);
      this.#sockets.add(from);
      from.on('close', () => {
        this.#ways.delete(way);
        this.#sockets.delete(from);
      });
    }
  }
}

const SILENT: WayFault = { change: () => undefined };

/** One way of a connection. What comes leaves in the same order, whatever happens to the network meanwhile. */
class Way {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #fault: () => WayFault;
  /** On its way; null is the end. */
  readonly #queue: { readonly bytes: Buffer | null; readonly dueMs: number }[] = [];
  #passed = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, fault: () => WayFault) {
    this.#from = from;
    this.#to = to;
    this.#fault = fault;
    let ended = false;
    from.on('data', (bytes) => this.#came(bytes));
    from.on('end', () => {
      ended = true;
      this.#came(null);
    });
    from.on('error', () => {});
    from.on('close', () => {
      // One that was reset takes the other with it; one that ended well lets what it said arrive.
      if (!ended) to.destroy();
    });
    to.on('close', () => clearTimeout(this.#timer));
  }

  /** Passes on what is due. */
  pass(): void {
    clearTimeout(this.#timer);
    for (let next = this.#queue[0]; next !== undefined && !this.#fault().hold; next = this.#queue[0]) {
      const leftMs = next.dueMs - performance.now();
      if (leftMs > 0) {
        this.#timer = setTimeout(() => this.pass(), leftMs);
        return;
      }
      this.#queue.shift();
      if (next.bytes === null) this.#to.end();
      else this.#write(next.bytes);
    }
  }

  #came(bytes: Buffer | null): void {
    const { change, delayMs = 0 } = this.#fault();
    const changed = bytes === null || change === undefined ? bytes : change(bytes);
    if (changed === null && bytes !== null) {
      this.#cut();
    } else if (changed !== undefined) {
      this.#queue.push({ bytes: changed, dueMs: performance.now() + delayMs });
      this.pass();
    }
  }

  #write(bytes: Buffer): void {
    const left = (this.#fault().cutAfterBytes ?? Number.POSITIVE_INFINITY) - this.#passed;
    this.#passed += bytes.length;
    if (!this.#to.writable) return;
    this.#to.write(bytes.subarray(0, Math.max(0, left)));
    if (bytes.length >= left) this.#cut();
  }

  /** Ends both sides; what was passed on arrives. */
  #cut(): void {
    this.#queue.length = 0;
    this.#to.destroySoon();
    this.#from.destroy();
  }
}
