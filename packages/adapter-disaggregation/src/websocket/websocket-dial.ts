import { AdapterError } from '@bufferwise/adapter-kit';
import type { LinkSettings } from '../link/link-options.ts';
import { isNode } from './is-node.ts';
import type { WebSocketEvent, WebSocketLike } from './websocket-like.ts';
import type { WebSocketConstructor, WebSocketTls } from './websocket-transport.ts';
import { MAX_SOCKET_MESSAGE_BYTES } from './websocket-wire.ts';

export interface DialOptions {
  readonly url: URL;
  readonly tls: WebSocketTls | undefined;
  readonly WebSocket: WebSocketConstructor | undefined;
  readonly settings: Pick<LinkSettings, 'clock' | 'handshakeTimeoutMs'>;
  readonly signal: AbortSignal;
}

/** An open socket. Rejects with {AdapterError} `unknown-address` when nobody answers, and with the signal's reason. */
export async function dialWebSocket({ url, tls, WebSocket, settings, signal }: DialOptions): Promise<WebSocketLike> {
  const make = WebSocket === undefined ? await platformSocket(tls) : (address: string) => new WebSocket(address);
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const nobody = (cause: unknown) =>
      new AdapterError('unknown-address', `nobody takes WebSockets on ${url.href}; start the other side first`, { cause });
    let socket: WebSocketLike;
    try {
      socket = make(url.href);
    } catch (cause) {
      // Such as ws:// from a page that came by https.
      reject(nobody(cause));
      return;
    }
    let isSettled = false;
    const settle = (end: () => void) => {
      if (isSettled) return;
      isSettled = true;
      tooLate();
      signal.removeEventListener('abort', stop);
      end();
    };
    const giveUp = (reason: unknown) =>
      settle(() => {
        if (socket.terminate) socket.terminate();
        else socket.close();
        reject(reason);
      });
    const stop = () => giveUp(signal.reason);
    const failed = ({ error }: WebSocketEvent) => giveUp(nobody(error));
    const tooLate = settings.clock.after(settings.handshakeTimeoutMs, () => failed({}));
    socket.addEventListener('open', () => settle(() => resolve(socket)));
    socket.addEventListener('error', failed);
    socket.addEventListener('close', failed);
    signal.addEventListener('abort', stop);
  });
}

/** In Node the client of `ws`, which takes certificates and bounds messages by itself; elsewhere, and without it, the platform's own. */
async function platformSocket(tls: WebSocketTls | undefined): Promise<(address: string) => WebSocketLike> {
  const { WebSocket: own } = globalThis as { WebSocket?: WebSocketConstructor };
  if (!isNode() && own !== undefined) return (address) => new own(address);
  const found = await import(/* webpackIgnore: true */ /* @vite-ignore */ 'ws').catch((cause: unknown) => ({
    WebSocket: undefined,
    cause,
  }));
  if (found.WebSocket !== undefined) {
    const { WebSocket } = found;
    const options = { ...(tls as object), maxPayload: MAX_SOCKET_MESSAGE_BYTES, perMessageDeflate: false };
    return (address) => new WebSocket(address, options) as unknown as WebSocketLike;
  }
  if (own !== undefined && tls === undefined) return (address) => new own(address);
  const { cause } = found as { cause: unknown };
  throw new AdapterError('unsupported-call', 'this Node needs the package ws to connect by WebSocket; install it', { cause });
}
