import { CallGate, type CallOptions, type PageConnection, type PageListener } from '@bufferwise/adapter-kit';
import { greet } from './greet.ts';
import { LinkListener } from './link-listener.ts';
import { type LinkOptions, type LinkSettings, linkSettings } from './link-options.ts';
import { importKey, type SealKey } from './seals.ts';
import type { Wire } from './wire.ts';

/** Makes a listener of its address and of what takes no more wires then. */
export type MakeListener = (address: string, stop: () => void | Promise<void>) => LinkListener;

/** What every transport over links does alike: connections are made of wires, and all that is open is closed with it. */
export class LinkEnds {
  readonly settings: LinkSettings;
  readonly #gate: CallGate;
  readonly #key: Promise<SealKey | null>;
  readonly #open = new Set<{ close(): Promise<void> }>();

  /**
   * @param name of the transport, for messages
   * @param options without a key: links that prove nothing
   * @throws {TransferError} `invalid-transport-options`
   */
  constructor(name: string, options: LinkOptions & { readonly key?: Uint8Array }) {
    this.settings = linkSettings(options);
    this.#gate = new CallGate(name);
    this.#key = options.key === undefined ? Promise.resolve(null) : importKey(options.key);
  }

  /** @param serve begins to listen, and offers wires to the listener that it makes */
  listen(options: CallOptions | undefined, serve: (make: MakeListener) => Promise<LinkListener>): Promise<PageListener> {
    return this.#gate.run(options, async () => {
      const key = await this.#key;
      return serve((address, stop) => {
        const listener: LinkListener = new LinkListener({
          address,
          key,
          settings: this.settings,
          stop: async () => {
            this.#open.delete(listener);
            await stop();
          },
          opened: (connection) => this.#keep(connection),
        });
        this.#open.add(listener);
        return listener;
      });
    });
  }

  /** @param dial brings a wire to who listens, or rejects with the signal's reason */
  connect(options: CallOptions | undefined, dial: (signal: AbortSignal) => Promise<Wire>): Promise<PageConnection> {
    return this.#gate.run(options, async () => {
      const key = await this.#key;
      const stopped = this.#gate.interruption(options);
      const greeting = new AbortController();
      stopped.promise.catch((reason) => greeting.abort(reason));
      try {
        const wire = await dial(greeting.signal);
        const connection = await greet(wire, 'connecting', key, this.settings, { signal: greeting.signal });
        this.#keep(connection);
        return connection;
      } finally {
        stopped.release();
      }
    });
  }

  /** Closes what is open, and what was being opened. */
  close(last: () => void = () => {}): Promise<void> {
    const closing = [...this.#open].map((each) => each.close());
    return this.#gate.close(async () => {
      last();
      await Promise.all([...closing, ...[...this.#open].map((each) => each.close())]);
    });
  }

  #keep(connection: { close(): Promise<void>; onEnd: () => void }): void {
    this.#open.add(connection);
    connection.onEnd = () => this.#open.delete(connection);
  }
}
