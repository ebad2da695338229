import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net';

/** What a proxy does to the bytes that a server sends. */
export interface Fault {
  /** What becomes of a piece of the stream, as the network cut it; null ends the connection after nothing of it, undefined drops it. */
  readonly answer?: (bytes: Buffer) => Buffer | null | undefined;
  /** Ends the connection after so many bytes of answers, counted from its beginning. */
  readonly cutAfterBytes?: number;
  /** Milliseconds by which every piece comes later. */
  readonly delayMs?: number;
  /** Takes connections and bytes, and never answers. */
  readonly stall?: boolean;
  /** Ends every connection at once. */
  readonly refuse?: boolean;
}

/** A network between a client and a server on this machine that can be made a bad one. */
export class FaultProxy {
  readonly #server: Server;
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  #fault: Fault = {};

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer((socket) => this.#serve(socket));
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

  /** Replaces the fault, for open connections, too. `{}` is a good network. */
  set fault(fault: Fault) {
    this.#fault = fault;
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
    const server = createConnection({ port: this.#target, host: '127.0.0.1' });
    let answered = 0;
    const end = () => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', end);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        end();
      });
    }
    client.on('data', (bytes) => {
      if (!this.#fault.stall) server.write(bytes);
    });
    server.on('data', (bytes) => {
      const { stall, delayMs, answer, cutAfterBytes = Number.POSITIVE_INFINITY } = this.#fault;
      if (stall) return;
      const changed = answer === undefined ? bytes : answer(bytes);
      if (changed === undefined) return;
      if (changed === null) return end();
      const rest = cutAfterBytes - answered;
      answered += changed.length;
      const deliver = () => {
        client.write(changed.subarray(0, Math.max(0, rest)));
        if (changed.length >= rest) client.destroySoon();
      };
      if (delayMs === undefined) deliver();
      else setTimeout(deliver, delayMs);
    });
  }
}
