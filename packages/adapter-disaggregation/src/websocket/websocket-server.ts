import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AdapterError } from '@bufferwise/adapter-kit';
import { isNode } from './is-node.ts';
import type { WebSocketLike } from './websocket-like.ts';
import type { WebSocketTls } from './websocket-transport.ts';
import { MAX_SOCKET_MESSAGE_BYTES } from './websocket-wire.ts';

/** A server that takes WebSockets. */
export interface WebSocketServerHandle {
  /** Where it listens, as a URL. */
  readonly address: string;
  /** Takes no more; sockets that are open stay so. */
  stop(): void;
}

export interface ServeOptions {
  readonly url: URL;
  readonly tls: WebSocketTls | undefined;
  /** What does not ask for a WebSocket within this is ended. Milliseconds. */
  readonly handshakeTimeoutMs: number;
  opened(socket: WebSocketLike, peer: string): void;
}

/** Bytes that the head of a request to upgrade may have. */
const MOST_HEADER_BYTES = 8192;

/** Only in Node, with `ws`. Rejects with {AdapterError} `unsupported-call` elsewhere, `unknown-address` where nobody can listen. */
export async function serveWebSockets({ url, tls, handshakeTimeoutMs, opened }: ServeOptions): Promise<WebSocketServerHandle> {
  const { WebSocketServer, http, https } = await platform();
  const isSecure = url.protocol === 'wss:';
  if (isSecure && tls === undefined)
    throw new AdapterError('unknown-address', `cannot listen on ${url.href} without a certificate; give tls.listen cert and key`);
  const limits = { maxHeaderSize: MOST_HEADER_BYTES, headersTimeout: handshakeTimeoutMs, requestTimeout: handshakeTimeoutMs };
  const server: Server = isSecure
    ? https.createServer({ ...limits, ...(tls as object) }, sayWebSocketsOnly)
    : http.createServer(limits, sayWebSocketsOnly);
  await listening(server, url);
  const sockets = new WebSocketServer({
    server,
    path: url.pathname,
    maxPayload: MAX_SOCKET_MESSAGE_BYTES,
    perMessageDeflate: false,
    clientTracking: false,
  });
  // Of the server and of sockets that never became one: nobody's business.
  sockets.on('error', () => {});
  sockets.on('wsClientError', (_, socket) => socket.destroy());
  sockets.on('connection', (socket, { socket: { remoteAddress, remotePort } }) => {
    socket.on('error', () => {});
    opened(socket as unknown as WebSocketLike, `${remoteAddress}:${remotePort}`);
  });
  const { address, family, port } = server.address() as AddressInfo;
  const host = family === 'IPv6' ? `[${address}]` : address;
  return {
    address: `${url.protocol}//${host}:${port}${url.pathname}`,
    stop() {
      sockets.close();
      server.close();
      server.closeAllConnections();
    },
  };
}

async function platform() {
  const nobody = (cause?: unknown): never => {
    throw new AdapterError(
      'unsupported-call',
      'only Node can listen for WebSockets, with the package ws installed; connect from elsewhere',
      { cause },
    );
  };
  if (!isNode()) return nobody();
  // Bundlers leave these alone, so that a page can be built in which none of them is there.
  const [{ WebSocketServer }, http, https] = await Promise.all([
    import(/* webpackIgnore: true */ /* @vite-ignore */ 'ws').catch(nobody),
    import(/* webpackIgnore: true */ /* @vite-ignore */ 'node:http').catch(nobody),
    import(/* webpackIgnore: true */ /* @vite-ignore */ 'node:https').catch(nobody),
  ]);
  return { WebSocketServer, http, https };
}

function listening(server: Server, url: URL): Promise<void> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (url.protocol === 'wss:' ? 443 : 80) : Number(url.port);
  return new Promise((resolve, reject) => {
    server.once('error', (cause) =>
      reject(new AdapterError('unknown-address', `cannot listen on ${url.href}; choose another address`, { cause })),
    );
    server.listen({ host, port }, () => {
      server.on('error', () => {});
      resolve();
    });
  });
}

function sayWebSocketsOnly(_: IncomingMessage, response: ServerResponse): void {
  response.writeHead(426, { connection: 'close' }).end();
}
