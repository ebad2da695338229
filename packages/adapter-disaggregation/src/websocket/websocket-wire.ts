import { deaf, type Wire, type WireListener } from '../link/wire.ts';
import { OPEN, type WebSocketLike } from './websocket-like.ts';

/**
 * Bytes that one WebSocket message carries at most: frames that are longer travel in several. So nobody has to make room for more at a
 * time, whatever the limits of the transport are, and whoever sends more is cut off before anything of it is read.
 */
export const MAX_SOCKET_MESSAGE_BYTES = 1 << 16;

/** Closed because it was over: nothing is wrong. */
const NORMAL = 1000;

/** A WebSocket as a wire: where its messages begin and end has no meaning. */
export class WebSocketWire implements Wire {
  readonly peer: string;
  listener: WireListener = deaf;
  readonly #socket: WebSocketLike;
  readonly #closed: Promise<void>;
  #tellEnded = () => {};

  /** @param socket open; the wire's from now on */
  constructor(socket: WebSocketLike, peer: string) {
    this.#socket = socket;
    this.peer = peer;
    socket.binaryType = 'arraybuffer';
    socket.addEventListener('message', ({ data }) => {
      if (data instanceof ArrayBuffer && data.byteLength <= MAX_SOCKET_MESSAGE_BYTES) this.listener.bytes(new Uint8Array(data));
      // Text, or too much: no transport sends that.
      else this.destroy();
    });
    // Why a socket failed changes nothing: `close` follows.
    socket.addEventListener('error', () => {});
    this.#closed = new Promise((resolve) => {
      this.#tellEnded = () => {
        this.#tellEnded = () => {};
        this.listener.ended();
        resolve();
      };
      socket.addEventListener('close', () => this.#tellEnded());
    });
  }

  get queuedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  write(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length && this.#socket.readyState === OPEN; at += MAX_SOCKET_MESSAGE_BYTES)
      this.#socket.send(bytes.subarray(at, at + MAX_SOCKET_MESSAGE_BYTES));
  }

  /** The other side answers the end of a WebSocket when it has read what came before. */
  end(): Promise<void> {
    this.#socket.close(NORMAL);
    return this.#closed;
  }

  destroy(): void {
    if (this.#socket.terminate) this.#socket.terminate();
    else this.#socket.close(NORMAL);
    // A browser waits for the other side, which may be gone.
    this.#tellEnded();
  }
}
