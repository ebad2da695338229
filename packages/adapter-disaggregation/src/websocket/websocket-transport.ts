import type { CallOptions, PageConnection, PageListener, PageTransport, PageTransportLimits } from '@bufferwise/adapter-kit';
import { LinkEnds } from '../link/link-ends.ts';
import type { LinkOptions } from '../link/link-options.ts';
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
  readonly #ends: LinkEnds;
  readonly #options: WebSocketTransportOptions;

  /** @throws {TransferError} `invalid-transport-options` */
  constructor(options: WebSocketTransportOptions) {
    this.#ends = new LinkEnds(this.name, options);
    this.limits = this.#ends.settings.limits;
    this.#options = options;
  }

  /** Rejects with {AdapterError} `unsupported-call` where nobody can listen: in browsers, and without `ws`. */
  listen(address = 'ws://127.0.0.1:0', options?: CallOptions): Promise<PageListener> {
    return this.#ends.listen(options, async (make) => {
      const server = await serveWebSockets({
        url: parseWebSocketAddress(address),
        tls: this.#options.tls?.listen,
        handshakeTimeoutMs: this.#ends.settings.handshakeTimeoutMs,
        opened: (socket, peer) => void listener.offer(new WebSocketWire(socket, peer)),
      });
      const listener = make(server.address, () => server.stop());
      return listener;
    });
  }

  connect(address: string, options?: CallOptions): Promise<PageConnection> {
    return this.#ends.connect(options, async (signal) => {
      const socket = await dialWebSocket({
        url: parseWebSocketAddress(address),
        tls: this.#options.tls?.connect,
        WebSocket: this.#options.WebSocket,
        settings: this.#ends.settings,
        signal,
      });
      return new WebSocketWire(socket, address);
    });
  }

  close(): Promise<void> {
    return this.#ends.close();
  }
}
