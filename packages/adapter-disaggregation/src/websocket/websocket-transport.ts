import {
  CallGate,
  type CallOptions,
  type PageConnection,
  type PageListener,
  type PageTransport,
  type PageTransportLimits,
} from '@bufferwise/adapter-kit';
import { greet } from '../link/greet.ts';
import { LinkListener } from '../link/link-listener.ts';
import { type LinkOptions, type LinkSettings, linkSettings } from '../link/link-options.ts';
import { importKey, type SealKey } from '../link/seals.ts';
import { parseWebSocketAddress } from './websocket-address.ts';
import { dialWebSocket } from './websocket-dial.ts';
import type { WebSocketLike } from './websocket-like.ts';
import { serveWebSockets } from './websocket-server.ts';
import { WebSocketWire } from './websocket-wire.ts';

/** Certificates, as the TLS of Node takes them; browsers have their own. */
export interface WebSocketTls {
  /** PEM. */
  readonly cert?: string | Uint8Array;
  readonly key?: string | Uint8Array;
  readonly passphrase?: string;
  /** Who signs the certificates of the other side. */
  readonly ca?: string | Uint8Array | readonly (string | Uint8Array)[];
  /** Of a listening side: whether the other side must show a certificate. */
  readonly requestCert?: boolean;
  readonly rejectUnauthorized?: boolean;
  readonly servername?: string;
}

export type WebSocketConstructor = new (address: string) => WebSocketLike;

export interface WebSocketTransportOptions extends LinkOptions {
  /** Secret that both sides share: 16 random bytes or more. It never travels. */
  readonly key: Uint8Array;
  /** For `wss://`: `listen` needs a certificate and its key; `connect` only where the other side's is not commonly trusted. */
  readonly tls?: { readonly listen?: WebSocketTls; readonly connect?: WebSocketTls };
  /** What connects. Default: `ws` in Node, the platform's own elsewhere. */
  readonly WebSocket?: WebSocketConstructor;
}

/**
 * Pages over WebSockets, so that a browser can be one of the two sides. Connects from browsers and from Node, listens in Node with the
 * package `ws`. Addresses are URLs, `ws://host:port/path` or `wss://host:port/path`; to listen, leave the address out for a free port of
 * 127.0.0.1, or take port 0 for a free one of a host.
 *
 * Without `wss` others can read what travels, and cannot change, repeat or make up any of it. The shared key stands between it and other
 * pages of a browser: who does not have it gets no connection, from whatever origin.
 */
export class WebSocketTransport implements PageTransport {
  readonly specVersion = 'v1';
  readonly name = 'WebSocket transport';
  readonly supports = { flowControl: true, damageReports: true } as const;
  readonly limits: PageTransportLimits;
  readonly #gate = new CallGate(this.name);
  readonly #settings: LinkSettings;
  readonly #key: Promise<SealKey>;
  readonly #options: WebSocketTransportOptions;
  readonly #open = new Set<{ close(): Promise<void> }>();

  /** @throws {TransferError} `invalid-transport-options` */
  constructor(options: WebSocketTransportOptions) {
    this.#settings = linkSettings(options);
    this.limits = this.#settings.limits;
    this.#key = importKey(options.key);
    this.#options = options;
  }

  /** Rejects with {AdapterError} `unsupported-call` where nobody can listen: in browsers, and without `ws`. */
  listen(address = 'ws://127.0.0.1:0', options?: CallOptions): Promise<PageListener> {
    return this.#gate.run(options, async () => {
      const url = parseWebSocketAddress(address);
      const key = await this.#key;
      const server = await serveWebSockets({
        url,
        tls: this.#options.tls?.listen,
        handshakeTimeoutMs: this.#settings.handshakeTimeoutMs,
        opened: (socket, peer) => void listener.offer(new WebSocketWire(socket, peer)),
      });
      const listener: LinkListener = new LinkListener({
        address: server.address,
        key,
        settings: this.#settings,
        stop: async () => {
          server.stop();
          this.#open.delete(listener);
        },
        opened: (connection) => this.#keep(connection),
      });
      this.#open.add(listener);
      return listener;
    });
  }

  connect(address: string, options?: CallOptions): Promise<PageConnection> {
    return this.#gate.run(options, async () => {
      const url = parseWebSocketAddress(address);
      const key = await this.#key;
      const stopped = this.#gate.interruption(options);
      const greeting = new AbortController();
      stopped.promise.catch((reason) => greeting.abort(reason));
      try {
        const socket = await dialWebSocket({
          url,
          tls: this.#options.tls?.connect,
          WebSocket: this.#options.WebSocket,
          settings: this.#settings,
          signal: greeting.signal,
        });
        const wire = new WebSocketWire(socket, address);
        const connection = await greet(wire, 'connecting', key, this.#settings, { signal: greeting.signal });
        this.#keep(connection);
        return connection;
      } finally {
        stopped.release();
      }
    });
  }

  close(): Promise<void> {
    const closing = [...this.#open].map((each) => each.close());
    return this.#gate.close(async () => {
      await Promise.all([...closing, ...[...this.#open].map((each) => each.close())]);
    });
  }

  #keep(connection: { close(): Promise<void>; onEnd: () => void }): void {
    this.#open.add(connection);
    connection.onEnd = () => this.#open.delete(connection);
  }
}
