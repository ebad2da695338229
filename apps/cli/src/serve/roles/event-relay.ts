import type { KvEvent, KvEventSink } from '@bufferwise/cache-manager';

/** Passes on what a cache tells to whoever is there: the one who wants to know it is made from the cache. */
export class EventRelay implements KvEventSink {
  readonly partialBlocks = false;
  /** Undefined: nobody wants to know. */
  target: KvEventSink | undefined;

  push(events: readonly KvEvent[]): void {
    this.target?.push(events);
  }
}
