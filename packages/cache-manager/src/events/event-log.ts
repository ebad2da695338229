import { StateError } from '@bufferwise/core-policy';
import type { KvEvent, KvEventSink } from '../ports/kv-event-sink.ts';

/** The reference sink, in this process: keeps the latest events until they are taken. For tests, tools and whoever polls. */
export class EventLog implements KvEventSink {
  readonly partialBlocks: boolean;
  readonly #capacity: number;
  #events: KvEvent[] = [];
  #dropped = 0;

  /**
   * @param options.capacity      events kept at most, >= 1; the oldest go first. Default 65,536
   * @param options.partialBlocks whether partial blocks are told, too. Default false
   * @throws {StateError} `invalid-capacity`
   */
  constructor(options: { capacity?: number; partialBlocks?: boolean } = {}) {
    const { capacity = 65_536, partialBlocks = false } = options;
    if (!Number.isSafeInteger(capacity) || capacity < 1) {
      throw new StateError('invalid-capacity', `EventLog: capacity is ${capacity}; it must be a whole number of events above 0`);
    }
    this.#capacity = capacity;
    this.partialBlocks = partialBlocks;
  }

  /** Events that were dropped because nobody took them in time. */
  get dropped(): number {
    return this.#dropped + Math.max(0, this.#events.length - this.#capacity);
  }

  push(events: readonly KvEvent[]): void {
    for (const event of events) this.#events.push(event);
    const over = this.#events.length - this.#capacity;
    // Cut in large pieces: dropping one at a time from the front costs the whole list each time.
    if (over > this.#capacity) this.#dropOldest(over);
  }

  /** The events that are kept, oldest first. They stay. */
  read(): readonly KvEvent[] {
    this.#dropOldest(this.#events.length - this.#capacity);
    return [...this.#events];
  }

  /** The events that are kept, oldest first, and forgets them. */
  take(): KvEvent[] {
    this.#dropOldest(this.#events.length - this.#capacity);
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #dropOldest(count: number): void {
    if (count <= 0) return;
    this.#events.splice(0, count);
    this.#dropped += count;
  }
}
