import type { Msg, NatsConnection, Subscription } from '@nats-io/nats-core';
import type { ControlMessage } from './control-message.ts';
import { type Envelope, EnvelopeCodec } from './envelope.ts';
import { SessionGuard } from './session-guard.ts';

/** Messages that may wait to be checked; more are dropped, as a bus may drop them. */
const MOST_WAITING = 1 << 14;

export interface EndpointEvents {
  message(envelope: Envelope): void;
  connected(): void;
  disconnected(): void;
  /** The connection is gone for good. */
  closed(): void;
  /** What goes wrong and is nobody's call: a message that was dropped, a subject that may not be used. */
  trouble(error: unknown): void;
}

export interface EndpointOptions {
  readonly nats: NatsConnection;
  /** Who this is, to the others. */
  readonly id: string;
  readonly key: Uint8Array | null;
  readonly mostSkewMs: number;
}

/** One who speaks and hears on NATS: seals and opens, in order, and lets nothing through twice. */
export class NatsEndpoint {
  readonly #nats: NatsConnection;
  readonly #id: string;
  readonly #codec: EnvelopeCodec;
  readonly #session = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  );
  readonly #startedMs = Date.now();
  readonly #guard = new SessionGuard();
  readonly #subscriptions = new Set<Subscription>();
  #events: EndpointEvents | undefined;
  #number = 0;
  #numWaiting = 0;
  #lastOut: Promise<unknown> = Promise.resolve();
  #lastIn: Promise<unknown> = Promise.resolve();

  /** @throws {TransferError} `invalid-transport-options` for a key that could be guessed */
  constructor({ nats, id, key, mostSkewMs }: EndpointOptions) {
    this.#nats = nats;
    this.#id = id;
    this.#codec = new EnvelopeCodec({ key, mostSkewMs });
  }

  /** Bytes that one message may have here. */
  get mostBytes(): number {
    return this.#nats.info?.max_payload ?? Number.POSITIVE_INFINITY;
  }

  /** From now on it is told what happens. */
  open(events: EndpointEvents): void {
    this.#events = events;
    void this.#watch();
  }

  publish(subject: string, message: ControlMessage): void {
    const envelope: Envelope = {
      from: this.#id,
      session: this.#session,
      startedMs: this.#startedMs,
      number: this.#number++,
      sentMs: Date.now(),
      message,
    };
    const sealed = this.#codec.seal(subject, envelope);
    this.#lastOut = this.#lastOut.then(async () => {
      try {
        this.#nats.publish(subject, await sealed);
      } catch (error) {
        this.#events?.trouble(error);
      }
    });
  }

  /** @returns what ends it, once what is on its way has come: it was meant for nobody else */
  subscribe(subject: string, queue?: string): () => void {
    const subscription = this.#nats.subscribe(subject, {
      ...(queue === undefined ? {} : { queue }),
      callback: (error, message) => {
        if (error) this.#events?.trouble(error);
        else this.#came(message);
      },
    });
    this.#subscriptions.add(subscription);
    return () => {
      this.#subscriptions.delete(subscription);
      subscription.drain().catch(() => {});
    };
  }

  /** Settles when what was published has reached the server. */
  async flush(): Promise<void> {
    await this.#lastOut;
    await this.#nats.flush();
  }

  /** Hears nothing more. The connection stays open. */
  async close(): Promise<void> {
    this.#events = undefined;
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    await this.#lastOut;
    if (!this.#nats.isClosed()) await this.#nats.flush().catch(() => {});
  }

  #came({ subject, data }: Msg): void {
    if (this.#numWaiting >= MOST_WAITING) return;
    this.#numWaiting++;
    // The memory is the connection's.
    const opened = this.#codec.open(subject, data.slice());
    opened.catch(() => {});
    this.#lastIn = this.#lastIn.then(async () => {
      this.#numWaiting--;
      try {
        const envelope = await opened;
        if (this.#guard.isNew(envelope)) this.#events?.message(envelope);
      } catch (error) {
        this.#events?.trouble(error);
      }
    });
  }

  async #watch(): Promise<void> {
    void this.#nats.closed().then(() => this.#events?.closed());
    for await (const { type } of this.#nats.status()) {
      if (this.#events === undefined) return;
      if (type === 'disconnect') this.#events.disconnected();
      else if (type === 'reconnect') this.#events.connected();
    }
  }
}
