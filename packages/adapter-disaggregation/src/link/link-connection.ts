import {
  AdapterError,
  CallGate,
  type CallOptions,
  encodeFrame,
  type Frame,
  type PageConnection,
  type Received,
  type StreamId,
  type TransferMessage,
  type TransferPages,
} from '@bufferwise/adapter-kit';
import type { ByteQueue } from './byte-queue.ts';
import { FrameReader, type FrameRecord } from './frame-reader.ts';
import type { LinkSession } from './handshake.ts';
import { type LinkSettings, messageCost, messageWindowBytes } from './link-options.ts';
import { RetiredRequests } from './retired-requests.ts';
import { joined, SEAL_BYTES, sameBytes, sealOf } from './seals.ts';
import { SendWindow } from './send-window.ts';
import type { Wire } from './wire.ts';

/** Of a credit frame: which window its bytes are of. */
const PAGES_WINDOW = 0;
const MESSAGES_WINDOW = 1;
/** In place of a window: an abort was heeded. */
const ABORT_HEEDED = 2;

const NO_STREAM: StreamId = { request: '', generation: 0, group: 0 };
/** Frames of heartbeats and credit that may come between two looks at the wire. */
const SLACK_BYTES = 1 << 16;
const utf8 = new TextEncoder();

/** What came and was not received, and what it takes of which window. */
interface Arrival {
  readonly received: Received;
  readonly window: typeof PAGES_WINDOW | typeof MESSAGES_WINDOW;
  readonly cost: number;
}

/**
 * One end of a wire once both sides know each other. Every frame carries a seal over its number and its bytes; what is out of order,
 * repeated or made by somebody else ends the connection. Both pages and messages have a window, so that what waits here is bounded
 * whoever the other side is.
 */
export class LinkConnection implements PageConnection {
  readonly #wire: Wire;
  readonly #session: LinkSession;
  readonly #settings: LinkSettings;
  readonly #gate: CallGate;
  readonly #reader: FrameReader;
  readonly #retired = new RetiredRequests();
  readonly #pages: SendWindow;
  readonly #messages: SendWindow;
  #arrivals: Arrival[] = [];
  /** By window: bytes that came and wait, and bytes that were taken and not yet said to be. */
  readonly #waiting = [0, 0];
  readonly #owed = [0, 0];
  /** Sends run one after the other, in the order of the calls. */
  #lastSend: Promise<unknown> = Promise.resolve();
  /** Frames are sealed and written in the order of their numbers. */
  #lastWrite: Promise<unknown> = Promise.resolve();
  #framesSent = 0;
  #framesCame = 0;
  #reading = false;
  #wireEnded = false;
  /** Why nothing goes any more; undefined while it does. */
  #lost: string | undefined;
  /** Who waits for the other side to have heeded an abort, in the order of the aborts. */
  #unheeded: (() => void)[] = [];
  #wakeReceiver = () => {};
  #stopWatch = () => {};
  #heardMs: number;
  #spokeMs: number;
  /** Since when bytes wait in this process to leave, and how many did at least since. */
  #stuck: { sinceMs: number; bytes: number };
  /** Called once, when the wire is not used any more. */
  onEnd = () => {};

  /** @param early what came behind the greeting */
  constructor(wire: Wire, session: LinkSession, settings: LinkSettings, early: ByteQueue) {
    this.#wire = wire;
    this.#session = session;
    this.#settings = settings;
    this.#gate = new CallGate(`connection to ${wire.peer}`);
    this.#pages = new SendWindow(session.peerLimits.windowBytes);
    this.#messages = new SendWindow(messageWindowBytes(session.peerLimits));
    const { limits, clock } = settings;
    this.#reader = new FrameReader({
      queue: early,
      maxBodyBytes: Math.max(limits.maxMessageBytes, limits.maxPagesBytes),
      sealBytes: session.keys === null ? 0 : SEAL_BYTES,
    });
    this.#heardMs = this.#spokeMs = clock.now();
    this.#stuck = { sinceMs: clock.now(), bytes: 0 };
    wire.listener = {
      bytes: (chunk) => this.#came(chunk),
      ended: () => {
        this.#wireEnded = true;
        void this.#read();
      },
    };
    this.#watch();
    void this.#read();
  }

  get bytesInFlight(): number {
    return this.#pages.inFlight;
  }

  send({ stream, body }: TransferMessage, options?: CallOptions): Promise<void> {
    return this.#gate.run(options, () => {
      this.#checkSize('a message', body, this.#session.peerLimits.maxMessageBytes);
      return this.#inOrder(this.#messages, messageCost(body.length), stream, options, () =>
        this.#transmit({ kind: 'message', stream, index: 0, body }),
      );
    });
  }

  sendPages({ stream, firstPage, bytes }: TransferPages, options?: CallOptions): Promise<void> {
    return this.#gate.run(options, () => {
      this.#checkSize('pages', bytes, this.#session.peerLimits.maxPagesBytes);
      return this.#inOrder(this.#pages, bytes.length, stream, options, () =>
        this.#transmit({ kind: 'pages', stream, index: firstPage, body: bytes }),
      );
    });
  }

  receive(options?: CallOptions): Promise<Received> {
    return this.#gate.run(options, async () => {
      const stopped = this.#gate.interruption(options);
      try {
        for (;;) {
          const next = this.#arrivals.shift();
          if (next !== undefined) {
            this.#settle(next);
            return next.received;
          }
          if (this.#lost !== undefined) throw this.#peerLost();
          await Promise.race([
            new Promise<void>((resolve) => {
              this.#wakeReceiver = resolve;
            }),
            stopped.promise,
          ]);
        }
      } finally {
        stopped.release();
      }
    });
  }

  /** Settles when the other side has dropped what it had not received. */
  abort(request: string, generation: number, reason: string): Promise<void> {
    return this.#gate.run(undefined, async () => {
      const body = utf8.encode(reason);
      this.#checkSize('the reason', body, this.#session.peerLimits.maxMessageBytes);
      this.retire(request, generation);
      // Not behind the sends that wait for room: they may wait for long, and none of them is of what is given up.
      await this.#messages.room(messageCost(body.length), this.#gate.closing, () => this.#lost !== undefined);
      this.#checkThere();
      this.#messages.take(messageCost(body.length));
      const heeded = new Promise<void>((resolve) => this.#unheeded.push(resolve));
      await this.#transmit({ kind: 'abort', stream: { request, generation, group: 0 }, index: 0, body });
      const stopped = this.#gate.interruption(undefined);
      try {
        await Promise.race([heeded, stopped.promise]);
      } finally {
        stopped.release();
      }
      this.#checkThere();
    });
  }

  retire(request: string, generation: number): void {
    this.#retired.add(request, generation);
    this.#dropRetired();
    this.#pages.wake();
    this.#messages.wake();
  }

  close(): Promise<void> {
    return this.#gate.close(async () => {
      this.#stopWatch();
      if (this.#lost === undefined) {
        void this.#transmit({ kind: 'close', stream: NO_STREAM, index: 0, body: new Uint8Array(0) }).catch(() => {});
        await this.#lastWrite.catch(() => {});
        const { clock, peerTimeoutMs } = this.#settings;
        // What was sent arrives, unless the other side takes nothing.
        const giveUp = clock.after(peerTimeoutMs, () => this.#wire.destroy());
        await this.#wire.end();
        giveUp();
      }
      this.#lose('it was closed here');
    });
  }

  // Sending

  #inOrder(window: SendWindow, cost: number, stream: StreamId, options: CallOptions | undefined, write: () => Promise<void>) {
    const call = async () => {
      const isOver = () => this.#lost !== undefined || this.#retired.has(stream.request, stream.generation);
      const stopped = this.#gate.interruption(options);
      try {
        await Promise.race([window.room(cost, this.#gate.closing, isOver), stopped.promise]);
      } finally {
        stopped.release();
      }
      options?.signal?.throwIfAborted();
      this.#checkThere();
      if (isOver()) return;
      window.take(cost);
      await write();
    };
    const result = this.#lastSend.then(call);
    this.#lastSend = result.catch(() => {});
    return result;
  }

  /** Settles when the frame was handed to the wire. */
  #transmit(frame: Frame): Promise<void> {
    const bytes = encodeFrame(frame);
    const number = this.#framesSent++;
    const { keys } = this.#session;
    const sealed = keys === null ? bytes : sealOf(keys.send, number, bytes).then((seal) => joined(bytes, seal));
    const written = this.#lastWrite.then(async () => {
      const record = await sealed;
      this.#checkThere();
      this.#wire.write(record);
      this.#spokeMs = this.#settings.clock.now();
    });
    this.#lastWrite = written.catch(() => {});
    return written;
  }

  #checkThere(): void {
    if (this.#lost !== undefined) throw this.#peerLost();
  }

  #checkSize(what: string, bytes: Uint8Array, most: number): void {
    if (bytes.length <= most) return;
    throw new AdapterError('message-too-large', `${what} of ${bytes.length} bytes; ${this.#wire.peer} takes ${most} at a time`);
  }

  // Receiving

  #came(chunk: Uint8Array): void {
    if (this.#lost !== undefined) return;
    const { limits, clock } = this.#settings;
    this.#heardMs = clock.now();
    this.#reader.push(chunk);
    if (this.#reader.length > limits.windowBytes + messageWindowBytes(limits) + SLACK_BYTES) {
      this.#lose('it sent more than there is room for');
      return;
    }
    void this.#read();
  }

  /** Takes frames out of what came, one after the other. */
  async #read(): Promise<void> {
    if (this.#reading) return;
    this.#reading = true;
    try {
      while (this.#lost === undefined) {
        const record = this.#reader.next();
        if (record === null) break;
        await this.#checkSeal(record);
        if (this.#lost === undefined) this.#arrive(record);
      }
      if (this.#wireEnded) this.#lose('its end of the wire is gone');
    } catch (error) {
      this.#lose(`what it sent is not to be trusted (${(error as Error).message})`);
    } finally {
      this.#reading = false;
    }
  }

  async #checkSeal({ frame, bytes, seal }: FrameRecord): Promise<void> {
    const number = this.#framesCame++;
    const { keys } = this.#session;
    // A frame that fell victim to the network says so itself; nothing of it is used.
    if (keys === null || frame.damaged) return;
    if (!sameBytes(seal, await sealOf(keys.receive, number, bytes)))
      throw new AdapterError('frame-damaged', 'a frame has the seal of another');
  }

  #arrive({ frame }: FrameRecord): void {
    const { kind, stream, index, body } = frame;
    if (kind === 'pages') {
      const received: Received = frame.damaged
        ? { kind: 'damaged' }
        : { kind: 'pages', stream, firstPage: index, bytes: body.slice() };
      this.#keep({ received, window: PAGES_WINDOW, cost: body.length });
    } else if (frame.damaged) {
      // A lost message may be one that everything waits for: only a new connection helps.
      this.#lose('a message was damaged on its way');
    } else if (kind === 'credit') {
      if (stream.group === ABORT_HEEDED) this.#unheeded.shift()?.();
      else (stream.group === PAGES_WINDOW ? this.#pages : this.#messages).giveBack(index);
    } else if (kind === 'message') {
      this.#keep({
        received: { kind, stream, body: body.slice() },
        window: MESSAGES_WINDOW,
        cost: messageCost(body.length),
      });
    } else if (kind === 'abort') {
      const { request, generation } = stream;
      this.retire(request, generation);
      this.#tell(ABORT_HEEDED, 0);
      const reason = new TextDecoder().decode(body);
      this.#keep({
        received: { kind: 'aborted', request, generation, reason },
        window: MESSAGES_WINDOW,
        cost: messageCost(body.length),
      });
    } else {
      this.#lose('it closed the connection');
    }
  }

  #keep(arrival: Arrival): void {
    const { limits } = this.#settings;
    const room = arrival.window === PAGES_WINDOW ? limits.windowBytes : messageWindowBytes(limits);
    this.#waiting[arrival.window] += arrival.cost;
    if (this.#waiting[arrival.window] > room) {
      this.#lose('it sent more than there is room for');
      return;
    }
    if (this.#isDropped(arrival.received)) {
      this.#settle(arrival);
      return;
    }
    this.#arrivals.push(arrival);
    this.#wakeReceiver();
  }

  /** Tells the other side, when it is worth a frame, that there is room again. */
  #settle({ window, cost }: Arrival): void {
    this.#waiting[window] -= cost;
    this.#owed[window] += cost;
    const { limits } = this.#settings;
    const size = window === PAGES_WINDOW ? limits.windowBytes : messageWindowBytes(limits);
    if (this.#lost !== undefined || this.#owed[window] === 0 || (this.#waiting[window] > 0 && this.#owed[window] * 4 < size))
      return;
    const index = this.#owed[window];
    this.#owed[window] = 0;
    this.#tell(window, index);
  }

  /** Without waiting for it. */
  #tell(group: number, index: number): void {
    this.#transmit({ kind: 'credit', stream: { ...NO_STREAM, group }, index, body: new Uint8Array(0) }).catch(() => {});
  }

  #dropRetired(): void {
    const dropped = this.#arrivals.filter(({ received }) => this.#isDropped(received));
    if (dropped.length === 0) return;
    this.#arrivals = this.#arrivals.filter(({ received }) => !this.#isDropped(received));
    for (const arrival of dropped) this.#settle(arrival);
  }

  #isDropped(received: Received): boolean {
    return 'stream' in received && this.#retired.has(received.stream.request, received.stream.generation);
  }

  // Watching

  #watch(): void {
    const { clock, heartbeatMs, peerTimeoutMs } = this.#settings;
    this.#stopWatch = clock.after(heartbeatMs / 2, () => {
      const now = clock.now();
      const { queuedBytes } = this.#wire;
      if (queuedBytes === 0 || queuedBytes < this.#stuck.bytes) this.#stuck = { sinceMs: now, bytes: queuedBytes };
      else if (this.#stuck.bytes === 0) this.#stuck = { sinceMs: now, bytes: queuedBytes };
      if (now - this.#heardMs >= peerTimeoutMs) this.#lose(`nothing came from it for ${peerTimeoutMs} ms`);
      else if (now - this.#stuck.sinceMs >= peerTimeoutMs) this.#lose(`it took nothing for ${peerTimeoutMs} ms`);
      if (this.#lost !== undefined) return;
      if (now - this.#spokeMs >= heartbeatMs / 2) this.#tell(PAGES_WINDOW, 0);
      this.#watch();
    });
  }

  #lose(why: string): void {
    if (this.#lost !== undefined) return;
    this.#lost = why;
    this.#stopWatch();
    this.#pages.end();
    this.#messages.end();
    this.#wire.destroy();
    for (const resolve of this.#unheeded.splice(0)) resolve();
    this.#wakeReceiver();
    this.onEnd();
  }

  #peerLost(): AdapterError {
    return new AdapterError(
      'peer-lost',
      `${this.#wire.peer} is gone: ${this.#lost ?? 'the connection ended'}; connect again, with a new generation`,
    );
  }
}
