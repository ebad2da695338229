import { CallGate, type CallOptions, type PageConnection, type PageListener } from '@bufferwise/adapter-kit';
import { greet } from './greet.ts';
import type { LinkConnection } from './link-connection.ts';
import type { LinkSettings } from './link-options.ts';
import type { SealKey } from './seals.ts';
import type { Wire } from './wire.ts';

/** Wires that may be greeting at a time, and connections that may wait to be accepted. Others are ended at once. */
const MOST_WAITING = 128;

export interface LinkListenerOptions {
  readonly address: string;
  readonly key: SealKey | null;
  readonly settings: LinkSettings;
  /** Stops taking wires. */
  stop(): Promise<void>;
  opened(connection: LinkConnection): void;
}

/** Where wires come in and connections go out. */
export class LinkListener implements PageListener {
  readonly address: string;
  readonly #options: LinkListenerOptions;
  readonly #gate: CallGate;
  readonly #greeting = new AbortController();
  #numGreeting = 0;
  readonly #waiting: LinkConnection[] = [];
  #wake = () => {};

  constructor(options: LinkListenerOptions) {
    this.address = options.address;
    this.#options = options;
    this.#gate = new CallGate(`listener on ${options.address}`);
  }

  /** Takes a wire that somebody made. Never rejects: whoever does not greet rightly is nobody's business. */
  async offer(wire: Wire): Promise<void> {
    if (this.#gate.closed || this.#numGreeting >= MOST_WAITING || this.#waiting.length >= MOST_WAITING) {
      wire.destroy();
      return;
    }
    this.#numGreeting++;
    const { key, settings, opened } = this.#options;
    try {
      const connection = await greet(wire, 'accepting', key, settings, { signal: this.#greeting.signal });
      opened(connection);
      if (this.#gate.closed) {
        await connection.close();
        return;
      }
      this.#waiting.push(connection);
      this.#wake();
    } catch {
      // The wire is ended; the other side learns by that.
    } finally {
      this.#numGreeting--;
    }
  }

  accept(options?: CallOptions): Promise<PageConnection> {
    return this.#gate.run(options, async () => {
      const stopped = this.#gate.interruption(options);
      try {
        for (;;) {
          const connection = this.#waiting.shift();
          if (connection !== undefined) return connection;
          await Promise.race([
            new Promise<void>((resolve) => {
              this.#wake = resolve;
            }),
            stopped.promise,
          ]);
        }
      } finally {
        stopped.release();
      }
    });
  }

  close(): Promise<void> {
    this.#greeting.abort(this.#gate.closedError());
    return this.#gate.close(async () => {
      await Promise.all([this.#options.stop(), ...this.#waiting.map((connection) => connection.close())]);
    });
  }
}
