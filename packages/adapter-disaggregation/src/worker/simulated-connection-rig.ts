import type { PageConnection, Received, TransferMessage, TransferPages } from '@bufferwise/adapter-kit';
import { AdapterError } from '@bufferwise/adapter-kit';
import type { Clock } from '../clock.ts';

/** What a network does to what it carries, in percent and virtual milliseconds, until it is calm. */
export interface NetworkTrouble {
  readonly loss: number;
  readonly duplication: number;
  readonly truncation: number;
  readonly maxDelayMs: number;
  readonly calmAtMs: number;
}

/** Time that passes only when everything that was to happen has: the same seed gives the same run. */
export class SimulatedTime implements Clock {
  #nowMs = 0;
  #state: number;
  #order = 0;
  readonly #events: { atMs: number; order: number; run: () => void }[] = [];

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  now(): number {
    return this.#nowMs;
  }

  after(delayMs: number, call: () => void): () => void {
    const event = { atMs: this.#nowMs + delayMs, order: this.#order++, run: call };
    this.#events.push(event);
    return () => {
      event.run = () => {};
    };
  }

  /** A whole number from 0 on, below `below`. */
  chance(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  }

  /** Lets everything happen up to a time; what is promised in between is kept before the next thing does. */
  async run(untilMs: number): Promise<void> {
    for (;;) {
      await settled();
      let first = -1;
      this.#events.forEach(({ atMs, order }, i) => {
        const best = this.#events[first];
        if (best === undefined || atMs < best.atMs || (atMs === best.atMs && order < best.order)) first = i;
      });
      if (first < 0 || this.#events[first].atMs > untilMs) break;
      const [event] = this.#events.splice(first, 1);
      this.#nowMs = event.atMs;
      event.run();
    }
    this.#nowMs = untilMs;
  }
}

/** All that waits for nothing but promises has gone on. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** One end of a connection over a simulated network, which may lose, repeat, cut and delay what it carries, pages above all. */
export class SimulatedConnection implements PageConnection {
  peer: SimulatedConnection | null = null;
  bytesInFlight = 0;
  /** Bytes of pages that were sent. */
  pageBytesSent = 0;
  readonly #time: SimulatedTime;
  readonly #trouble: NetworkTrouble;
  readonly #arrived: Received[] = [];
  #wake = () => {};
  #lost = false;

  private constructor(time: SimulatedTime, trouble: NetworkTrouble) {
    this.#time = time;
    this.#trouble = trouble;
  }

  static pair(time: SimulatedTime, trouble: NetworkTrouble): [SimulatedConnection, SimulatedConnection] {
    const here = new SimulatedConnection(time, trouble);
    const there = new SimulatedConnection(time, trouble);
    here.peer = there;
    there.peer = here;
    return [here, there];
  }

  async send({ stream, body }: TransferMessage): Promise<void> {
    this.#check();
    const copy = body.slice();
    this.#carry((isWhole) => ({ kind: 'message', stream, body: isWhole ? copy : copy.subarray(0, copy.length >> 1) }));
  }

  async sendPages({ stream, firstPage, bytes }: TransferPages): Promise<void> {
    this.#check();
    this.pageBytesSent += bytes.length;
    const copy = bytes.slice();
    this.#carry((isWhole) => (isWhole ? { kind: 'pages', stream, firstPage, bytes: copy } : { kind: 'damaged' }));
  }

  async receive(): Promise<Received> {
    for (;;) {
      const next = this.#arrived.shift();
      if (next !== undefined) return next;
      this.#check();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async abort(): Promise<void> {}
  retire(): void {}

  /** Ends it: this end hears so at once; the other one only where the network tells it. */
  end(isTold: boolean): void {
    this.#lost = true;
    this.#wake();
    const { peer } = this;
    if (peer === null) return;
    peer.peer = null;
    if (isTold) this.#time.after(1, () => peer.end(false));
  }

  async close(): Promise<void> {
    this.end(true);
  }

  #carry(what: (isWhole: boolean) => Received): void {
    const { loss, duplication, truncation, maxDelayMs, calmAtMs } = this.#trouble;
    const isCalm = this.#time.now() >= calmAtMs;
    const happens = (percent: number) => !isCalm && this.#time.chance(100) < percent;
    for (let copies = happens(duplication) ? 2 : 1; copies > 0; copies--) {
      if (happens(loss)) continue;
      const received = what(!happens(truncation));
      const delayMs = isCalm ? 0 : this.#time.chance(maxDelayMs + 1);
      this.#time.after(1 + delayMs, () => this.peer?.arrive(received));
    }
  }

  private arrive(received: Received): void {
    this.#arrived.push(received);
    this.#wake();
  }

  #check(): void {
    if (this.#lost) throw new AdapterError('peer-lost', 'simulated connection: the other side is gone; connect again');
  }
}
