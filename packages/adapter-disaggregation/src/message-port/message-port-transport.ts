import {
  AdapterError,
  type CallOptions,
  type PageConnection,
  type PageListener,
  type PageTransport,
  type PageTransportLimits,
} from '@bufferwise/adapter-kit';
import { LinkEnds } from '../link/link-ends.ts';
import type { LinkListener } from '../link/link-listener.ts';
import type { LinkOptions } from '../link/link-options.ts';
import { type PortLike, PortWire } from './port-wire.ts';

export interface MessagePortTransportOptions extends LinkOptions {
  /**
   * Where the two sides meet: a port of a `MessageChannel`, a worker, or inside of one its scope. Other messages may pass it too. It
   * stays the caller's, and open.
   */
  readonly port: PortLike;
  /** Secret that both sides share, where not everybody who may post to the port is trusted: 16 random bytes or more. */
  readonly key?: Uint8Array;
}

/** What passes the port where the sides meet. */
interface Invitation {
  readonly bufferwise: 'connect';
  readonly address: string;
  /** The end of a channel that is for the connection. */
  readonly port: MessagePort;
}

/** Over a new channel, before it is a wire: whether somebody listens. */
type Answer = 'welcome' | 'nobody';

/**
 * Pages between a page and its workers, between tabs, or between threads of Node: bytes are handed over, not copied. Addresses are names of
 * any kind; each connection has a channel of its own.
 */
export class MessagePortTransport implements PageTransport {
  readonly specVersion = 'v1';
  readonly name = 'message port transport';
  readonly supports = { flowControl: true, damageReports: true } as const;
  readonly limits: PageTransportLimits;
  readonly #ends: LinkEnds;
  readonly #port: PortLike;
  readonly #listeners = new Map<string, LinkListener>();
  #nextAddress = 0;

  /** @throws {TransferError} `invalid-transport-options` */
  constructor(options: MessagePortTransportOptions) {
    this.#ends = new LinkEnds(this.name, options);
    this.limits = this.#ends.settings.limits;
    this.#port = options.port;
    this.#port.addEventListener('message', this.#invited);
    this.#port.start?.();
  }

  listen(address?: string, options?: CallOptions): Promise<PageListener> {
    return this.#ends.listen(options, async (make) => {
      const name = address ?? this.#freeAddress();
      if (this.#listeners.has(name))
        throw new AdapterError('unknown-address', `${this.name}: ${name} is taken; listen elsewhere, or leave the address out`);
      const listener = make(name, () => void this.#listeners.delete(name));
      this.#listeners.set(name, listener);
      return listener;
    });
  }

  connect(address: string, options?: CallOptions): Promise<PageConnection> {
    return this.#ends.connect(options, async (signal) => new PortWire(await this.#invite(address, signal), address));
  }

  close(): Promise<void> {
    return this.#ends.close(() => this.#port.removeEventListener('message', this.#invited));
  }

  #freeAddress(): string {
    for (;;) {
      const address = `port:${this.#nextAddress++}`;
      if (!this.#listeners.has(address)) return address;
    }
  }

  /** The own end of a new channel, once the other side has taken its own. */
  #invite(address: string, signal: AbortSignal): Promise<MessagePort> {
    const { port1, port2 } = new MessageChannel();
    const { clock, handshakeTimeoutMs } = this.#ends.settings;
    return new Promise((resolve, reject) => {
      const settle = (error?: unknown) => {
        tooLate();
        signal.removeEventListener('abort', stop);
        port1.removeEventListener('message', answered);
        if (error === undefined) {
          resolve(port1);
          return;
        }
        port1.close();
        reject(error);
      };
      const nobody = () =>
        settle(new AdapterError('unknown-address', `${this.name}: nobody listens on ${address}; start the other side first`));
      const answered = ({ data }: MessageEvent<Answer>) => (data === 'welcome' ? settle() : nobody());
      const stop = () => settle(signal.reason ?? new Error('stopped'));
      const tooLate = clock.after(handshakeTimeoutMs, nobody);
      signal.addEventListener('abort', stop);
      port1.addEventListener('message', answered);
      port1.start();
      this.#port.postMessage({ bufferwise: 'connect', address, port: port2 } satisfies Invitation, [port2]);
      if (signal.aborted) stop();
    });
  }

  readonly #invited = (event: Event): void => {
    const data = (event as MessageEvent<unknown>).data;
    if (!isInvitation(data)) return;
    const listener = this.#listeners.get(data.address);
    const answer: Answer = listener === undefined ? 'nobody' : 'welcome';
    data.port.postMessage(answer);
    if (listener === undefined) data.port.close();
    else void listener.offer(new PortWire(data.port, data.address));
  };
}

function isInvitation(data: unknown): data is Invitation {
  if (typeof data !== 'object' || data === null) return false;
  const { bufferwise, address, port } = data as Partial<Invitation>;
  return bufferwise === 'connect' && typeof address === 'string' && typeof port?.postMessage === 'function';
}
