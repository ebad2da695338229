import type { Socket } from 'node:net';
import { deaf, type Wire, type WireListener } from '../link/wire.ts';

/** Without the ways of a Buffer, whose `slice` shares its bytes. */
function plain({ buffer, byteOffset, length }: Buffer): Uint8Array {
  return new Uint8Array(buffer, byteOffset, length);
}

/** A socket as a wire. */
export class TcpWire implements Wire {
  readonly peer: string;
  listener: WireListener = deaf;
  readonly #socket: Socket;
  readonly #closed: Promise<void>;

  /** @param socket connected; the wire's from now on */
  constructor(socket: Socket, peer: string) {
    this.#socket = socket;
    this.peer = peer;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.listener.bytes(plain(chunk)));
    // Why a socket failed changes nothing: `close` follows.
    socket.on('error', () => {});
    this.#closed = new Promise((resolve) => {
      let ended = false;
      const end = () => {
        if (!ended) this.listener.ended();
        ended = true;
      };
      socket.on('end', end);
      socket.on('close', () => {
        end();
        resolve();
      });
    });
  }

  get queuedBytes(): number {
    return this.#socket.writableLength;
  }

  write(bytes: Uint8Array): void {
    if (this.#socket.writable) this.#socket.write(bytes);
  }

  /** Waits for the other end as well: a socket that is destroyed with unread bytes takes back what it had sent. */
  end(): Promise<void> {
    this.#socket.end();
    return this.#closed;
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
