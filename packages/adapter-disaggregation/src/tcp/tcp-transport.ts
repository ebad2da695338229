import { connect as connectSocket, createServer, type Server, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, createServer as createTlsServer, type TlsOptions } from 'node:tls';
import {
  AdapterError,
  type CallOptions,
  type PageConnection,
  type PageListener,
  type PageTransport,
  type PageTransportLimits,
} from '@bufferwise/adapter-kit';
import { LinkEnds } from '../link/link-ends.ts';
import type { LinkOptions } from '../link/link-options.ts';
import { addressOf, parseAddress } from './tcp-address.ts';
import { TcpWire } from './tcp-wire.ts';

export interface TcpTransportOptions extends LinkOptions {
  /** Secret that both sides share: 16 random bytes or more. It never travels. */
  readonly key: Uint8Array;
  /** Encrypts as well. `listen` goes to the server of Node, `connect` to its client; each side needs what it does. */
  readonly tls?: { readonly listen?: TlsOptions; readonly connect?: ConnectionOptions };
}

/**
 * Pages between machines, for Node. Addresses read `host:port`, IPv6 `[host]:port`; to listen, leave the address out for a free port of
 * 127.0.0.1, or take port 0 for a free one of a host.
 *
 * Without `tls` others can read what travels, and cannot change, repeat or make up any of it.
 */
export class TcpTransport implements PageTransport {
  readonly specVersion = 'v1';
  readonly name = 'TCP transport';
  readonly supports = { flowControl: true, damageReports: true } as const;
  readonly limits: PageTransportLimits;
  readonly #ends: LinkEnds;
  readonly #tls: TcpTransportOptions['tls'];

  /** @throws {TransferError} `invalid-transport-options` */
  constructor(options: TcpTransportOptions) {
    this.#ends = new LinkEnds(this.name, options);
    this.limits = this.#ends.settings.limits;
    this.#tls = options.tls;
  }

  listen(address = '127.0.0.1:0', options?: CallOptions): Promise<PageListener> {
    return this.#ends.listen(options, async (make) => {
      const { host, port } = parseAddress(address);
      const { server, listening } = await this.#serve(host, port);
      const listener = make(addressOf(server), () => new Promise((resolve) => server.close(() => resolve())));
      listening.socket = (socket) => void listener.offer(new TcpWire(socket, peerOf(socket)));
      return listener;
    });
  }

  connect(address: string, options?: CallOptions): Promise<PageConnection> {
    return this.#ends.connect(options, async (signal) => {
      const { host, port } = parseAddress(address);
      return new TcpWire(await this.#dial(address, host, port, signal), address);
    });
  }

  close(): Promise<void> {
    return this.#ends.close();
  }

  /** A server that listens; sockets go to whoever sets `listening.socket`. */
  #serve(host: string, port: number): Promise<{ server: Server; listening: { socket: (socket: Socket) => void } }> {
    const listening = { socket: (socket: Socket) => void socket.destroy() };
    const take = (socket: Socket) => listening.socket(socket);
    const tls = this.#tls?.listen;
    const server = tls === undefined ? createServer(take) : createTlsServer(tls, take);
    return new Promise((resolve, reject) => {
      server.once('error', (cause) =>
        reject(new AdapterError('unknown-address', `${this.name}: cannot listen on ${host}:${port}; choose another`, { cause })),
      );
      server.listen({ host, port }, () => {
        server.on('error', () => {});
        resolve({ server, listening });
      });
    });
  }

  #dial(address: string, host: string, port: number, signal: AbortSignal): Promise<Socket> {
    const tls = this.#tls?.connect;
    const { clock, handshakeTimeoutMs } = this.#ends.settings;
    return new Promise((resolve, reject) => {
      const socket = tls === undefined ? connectSocket({ host, port }) : connectTls({ ...tls, host, port });
      const settle = (end: () => void) => {
        tooLate();
        signal.removeEventListener('abort', stop);
        socket.off('error', failed);
        end();
      };
      const giveUp = (reason: unknown) =>
        settle(() => {
          socket.on('error', () => {});
          socket.destroy();
          reject(reason);
        });
      const failed = (cause: unknown) =>
        giveUp(
          new AdapterError('unknown-address', `${this.name}: nobody listens on ${address}; start the other side first`, {
            cause,
          }),
        );
      const stop = () => giveUp(signal.reason);
      const tooLate = clock.after(handshakeTimeoutMs, () => failed(undefined));
      socket.once(tls === undefined ? 'connect' : 'secureConnect', () => settle(() => resolve(socket)));
      socket.on('error', failed);
      signal.addEventListener('abort', stop);
      if (signal.aborted) stop();
    });
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress}:${remotePort}`;
}
