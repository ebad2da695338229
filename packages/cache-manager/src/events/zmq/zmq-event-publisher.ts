import { BufferwiseError, StateError } from '@bufferwise/core-policy';
import { Publisher, Router } from 'zeromq';
import type { KvEvent, KvEventSink } from '../../ports/kv-event-sink.ts';
import { encodeVllmBatch } from '../vllm/encode-vllm-batch.ts';
import { hasVllmCounterpart, toVllmEvents, type VllmTranslation } from '../vllm/to-vllm-events.ts';
import { endpointOfRank, isBound } from './endpoint.ts';
import { ReplayRing } from './replay-ring.ts';

/** Where and how events are published. */
export interface ZmqEventPublisherOptions {
  /** Of the PUB socket. It is bound when it has a `*` or `::`, or is `ipc` or `inproc`, else connected. Default `tcp://*:5557`. */
  endpoint?: string;
  /** Of the ROUTER socket that sends batches again. Left out: there is none. */
  replayEndpoint?: string;
  /** First frame of every message: what subscribers choose by. Default empty. */
  topic?: string;
  /** Which of several engines that serve one model this is: goes into every batch and is added to the ports. Default 0. */
  dataParallelRank?: number;
  /** Batches that may wait to be sent, here and for each subscriber, >= 1. Default 100,000. */
  highWaterMark?: number;
  /** Batches kept to be sent again, >= 1. Default 10,000. */
  replayBatches?: number;
  /** How events are written. Default `map`. */
  form?: 'map' | 'array';
  translation?: VllmTranslation;
  /** Seconds since 1970. Default: the clock of this machine. */
  now?: () => number;
}

/** Milliseconds for which a closed socket still delivers. */
const LINGER_MS = 1000;
/** The sequence number, -1, that ends an answer to a request for replay. */
const END_OF_REPLAY = new Uint8Array(8).fill(0xff);
const EMPTY = new Uint8Array(0);

interface WaitingBatch {
  readonly sequence: number;
  readonly timestamp: number;
  readonly events: readonly KvEvent[];
}

/**
 * Publishes a manager's events over ZeroMQ as vLLM does, for the routers that listen to it.
 *
 * A message has three frames: topic, sequence number (8 bytes, big endian, from 0), and the batch. Whoever finds a gap asks the
 * replay socket with one frame, the sequence number from which on it wants batches, behind an empty one (a DEALER sends both);
 * it gets one message a batch (empty, sequence number, batch) and at last one with sequence number -1.
 *
 * A step is never kept waiting: `push` only puts the batch into a queue. It is encoded and sent between steps. When the
 * queue is full the batch is lost and its sequence number is left out, which subscribers see as a gap.
 */
export class ZmqEventPublisher implements KvEventSink {
  /** Where the PUB socket is, with the port that was found when a wildcard was asked for. */
  readonly endpoint: string;
  /** Where batches are sent again; null when nowhere. */
  readonly replayEndpoint: string | null;
  readonly #publisher: Publisher;
  readonly #router: Router | null;
  readonly #replaying: Promise<void>;
  readonly #topic: string;
  readonly #dataParallelRank: number;
  readonly #highWaterMark: number;
  readonly #form: 'map' | 'array';
  readonly #translation: VllmTranslation;
  readonly #now: () => number;
  readonly #ring: ReplayRing;
  #waiting: WaitingBatch[] = [];
  /** Batches that were taken out of `#waiting` and are not sent yet. */
  #numInHand = 0;
  #sending: Promise<void> | null = null;
  #sequence = 0;
  #sent = 0;
  #lost = 0;
  #closed = false;

  /**
   * Opens the sockets.
   *
   * @throws {StateError} `invalid-high-water-mark`, `invalid-replay-batches` or `invalid-rank`; {BufferwiseError} `zmq-endpoint` when a
   *   socket cannot have its endpoint, with the reason as `cause`; no socket is open then
   */
  static async open(options: ZmqEventPublisherOptions = {}): Promise<ZmqEventPublisher> {
    const { highWaterMark = 100_000, replayBatches = 10_000, dataParallelRank = 0 } = options;
    checkWhole('high-water-mark', highWaterMark, 1);
    checkWhole('replay-batches', replayBatches, 1);
    checkWhole('rank', dataParallelRank, 0);
    const publisher = new Publisher({ sendHighWaterMark: highWaterMark, linger: LINGER_MS });
    const router = options.replayEndpoint === undefined ? null : new Router({ sendHighWaterMark: 0, linger: LINGER_MS });
    try {
      const endpoint = await attach(publisher, endpointOfRank(options.endpoint ?? 'tcp://*:5557', dataParallelRank));
      const replayEndpoint =
        router === null || options.replayEndpoint === undefined
          ? null
          : await attach(router, endpointOfRank(options.replayEndpoint, dataParallelRank));
      return new ZmqEventPublisher(options, { publisher, router, endpoint, replayEndpoint });
    } catch (error) {
      publisher.close();
      router?.close();
      throw error;
    }
  }

  private constructor(
    options: ZmqEventPublisherOptions,
    sockets: { publisher: Publisher; router: Router | null; endpoint: string; replayEndpoint: string | null },
  ) {
    this.endpoint = sockets.endpoint;
    this.replayEndpoint = sockets.replayEndpoint;
    this.#publisher = sockets.publisher;
    this.#router = sockets.router;
    this.#topic = options.topic ?? '';
    this.#dataParallelRank = options.dataParallelRank ?? 0;
    this.#highWaterMark = options.highWaterMark ?? 100_000;
    this.#form = options.form ?? 'map';
    this.#translation = options.translation ?? {};
    this.#now = options.now ?? (() => Date.now() / 1000);
    this.#ring = new ReplayRing(options.replayBatches ?? 10_000);
    this.#replaying = this.#router === null ? Promise.resolve() : this.#serveReplay(this.#router);
  }

  /** Batches that went out. */
  get sent(): number {
    return this.#sent;
  }

  /** Batches that were lost: no room in the queue, or not to be sent. Each leaves a gap in the sequence numbers. */
  get lost(): number {
    return this.#lost;
  }

  /** Takes a batch; sends it later. Does nothing once closed. */
  push(events: readonly KvEvent[]): void {
    if (this.#closed || !events.some(hasVllmCounterpart)) return;
    const sequence = this.#sequence++;
    if (this.#waiting.length + this.#numInHand >= this.#highWaterMark) {
      this.#lost++;
      return;
    }
    this.#waiting.push({ sequence, timestamp: this.#now(), events });
    this.#sending ??= this.#sendWaiting();
  }

  /** Resolves when everything pushed so far was handed to the socket. */
  async flushed(): Promise<void> {
    while (this.#sending !== null) await this.#sending;
  }

  /** Sends what waits, then closes the sockets; they deliver for one second more. Does nothing the second time. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.flushed();
    this.#publisher.close();
    this.#router?.close();
    await this.#replaying;
  }

  async #sendWaiting(): Promise<void> {
    // Not within the step that pushed.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const batches = this.#waiting;
      this.#waiting = [];
      this.#numInHand = batches.length;
      for (const batch of batches) {
        await this.#send(batch);
        this.#numInHand--;
      }
    }
    this.#sending = null;
  }

  async #send({ sequence, timestamp, events }: WaitingBatch): Promise<void> {
    try {
      const options = { timestamp, dataParallelRank: this.#dataParallelRank, form: this.#form };
      const payload = encodeVllmBatch(toVllmEvents(events, this.#translation), options);
      this.#ring.add({ sequence, payload });
      await this.#publisher.send([this.#topic, sequenceBytes(sequence), payload]);
      this.#sent++;
    } catch {
      // A translation of the caller's that throws, or a socket that cannot send: the gap tells subscribers.
      this.#lost++;
    }
  }

  async #serveReplay(router: Router): Promise<void> {
    for await (const frames of router) {
      const [client, delimiter, start] = frames;
      if (frames.length !== 3 || delimiter.length !== 0 || start.length !== 8) continue;
      try {
        for (const { sequence, payload } of this.#ring.from(start.readBigUInt64BE())) {
          await router.send([client, EMPTY, sequenceBytes(sequence), payload]);
        }
        await router.send([client, EMPTY, END_OF_REPLAY, EMPTY]);
      } catch {
        // Whoever asked is gone, or the socket was closed meanwhile: nobody waits for the rest.
      }
    }
  }
}

async function attach(socket: Publisher | Router, endpoint: string): Promise<string> {
  try {
    if (isBound(endpoint)) await socket.bind(endpoint);
    else socket.connect(endpoint);
  } catch (cause) {
    const way = isBound(endpoint) ? 'bound to' : 'connected to';
    throw new BufferwiseError(
      'zmq-endpoint',
      `events: no socket could be ${way} ${endpoint}; is the address free and spelt right?`,
      { cause },
    );
  }
  return socket.lastEndpoint ?? endpoint;
}

function checkWhole(name: 'high-water-mark' | 'replay-batches' | 'rank', value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  throw new StateError(`invalid-${name}`, `events: ${name} is ${value}; it must be a whole number from ${least} on`);
}

function sequenceBytes(sequence: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(sequence));
  return bytes;
}
