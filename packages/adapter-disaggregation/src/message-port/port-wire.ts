import { deaf, type Wire, type WireListener } from '../link/wire.ts';

/** What a message port, a worker and a worker's own scope have in common, in browsers and in Node. */
export interface PortLike {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(type: 'message' | 'messageerror' | 'close', listener: (event: Event) => void): void;
  removeEventListener(type: 'message' | 'messageerror' | 'close', listener: (event: Event) => void): void;
  start?(): void;
  close?(): void;
}

/** A message port as a wire. Bytes are handed over, not copied; null is the end. */
export class PortWire implements Wire {
  readonly peer: string;
  readonly queuedBytes = 0;
  listener: WireListener = deaf;
  readonly #port: PortLike;
  readonly #closed: Promise<void>;
  #resolveClosed = () => {};
  #ended = false;

  /** @param port of one end of a channel that nobody else uses; the wire's from now on */
  constructor(port: PortLike, peer: string) {
    this.#port = port;
    this.peer = peer;
    this.#closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    port.addEventListener('message', (event) => this.#came((event as MessageEvent<unknown>).data));
    port.addEventListener('messageerror', () => this.destroy());
    // Node, and newer browsers; elsewhere heartbeats tell.
    port.addEventListener('close', () => this.#end());
    port.start?.();
  }

  write(bytes: Uint8Array): void {
    if (this.#ended) return;
    // What fills its memory goes over as it is.
    const isWhole = bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength;
    this.#port.postMessage(bytes, isWhole ? [bytes.buffer as ArrayBuffer] : []);
  }

  end(): Promise<void> {
    if (!this.#ended) this.#port.postMessage(null, []);
    return this.#closed;
  }

  destroy(): void {
    if (this.#ended) return;
    // Also for those browsers that tell nobody that a port was closed.
    this.#port.postMessage(null, []);
    this.#end();
  }

  #came(data: unknown): void {
    if (this.#ended) return;
    if (data instanceof Uint8Array) this.listener.bytes(data);
    // Answered, as `end` on the other side waits for it.
    else this.destroy();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.listener.ended();
    this.#port.close?.();
    this.#resolveClosed();
  }
}
