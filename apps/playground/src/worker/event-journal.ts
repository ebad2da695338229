import type { CacheStatistics, KvEvent, KvEventSink } from '@bufferwise/cache-manager';
import type { OutsideCounts, SchedulerCounts } from '@bufferwise/hybrid-engine';
import type { JournalEntry } from '../protocol/journal.ts';

type WithoutTime<E> = E extends JournalEntry ? Omit<E, 'at'> : never;

/** What the counters of an engine say. */
export interface Counters {
  readonly statistics: CacheStatistics;
  readonly preemptions: Readonly<SchedulerCounts>;
  readonly outside: Readonly<OutsideCounts> | null;
}

/**
 * Collects what happens until somebody takes it. What became reusable comes from events, one entry for each group; what left, moved
 * or came back is counted, as the difference between two looks at the counters.
 */
export class EventJournal implements KvEventSink {
  readonly partialBlocks = true;
  /** Whether the published blocks are others than at the last `take`. */
  treeChanged = true;
  readonly #now: () => number;
  #entries: JournalEntry[] = [];
  /** Pages by group. What was stored in a colder tier was on the device before. */
  #stored = new Map<number, number>();
  #last: Counters | null = null;

  /** @param now milliseconds, never falling */
  constructor(now: () => number) {
    this.#now = now;
  }

  note(entry: WithoutTime<JournalEntry>): void {
    this.#entries.push({ at: this.#now(), ...entry } as JournalEntry);
  }

  push(events: readonly KvEvent[]): void {
    this.treeChanged = true;
    for (const event of events) {
      if (event.type !== 'stored' || event.tier > 0) continue;
      this.#stored.set(event.groupId, (this.#stored.get(event.groupId) ?? 0) + event.blocks.length);
    }
  }

  /** Another engine: its counters begin at 0. */
  restart(): void {
    this.#last = null;
    this.#stored.clear();
    this.treeChanged = true;
  }

  /** Everything since the last time, in the order in which it is told best: what came in, what became reusable, who had to go. */
  take(counters: Counters): JournalEntry[] {
    for (const [groupId, numPages] of this.#stored) this.note({ kind: 'stored', groupId, numPages });
    this.#stored.clear();
    this.#noteDifferences(counters);
    this.#last = counters;
    return this.#entries.splice(0);
  }

  #noteDifferences({ statistics, preemptions, outside }: Counters): void {
    const last = this.#last;
    for (const { groupId, evictedPages, counts } of statistics.groups) {
      const before = last?.statistics.groups[groupId];
      const since = (now: number, then = 0) => now - then;
      const evicted = since(evictedPages, before?.evictedPages);
      const kept = since(counts.offloadedPages, before?.counts.offloadedPages);
      const onboarded = since(counts.onboardedPages, before?.counts.onboardedPages);
      const dropped = since(counts.droppedPages, before?.counts.droppedPages);
      if (evicted > 0) this.note({ kind: 'evicted', groupId, numPages: evicted, kept: Math.min(kept, evicted) });
      if (onboarded > 0) this.note({ kind: 'onboarded', groupId, numPages: onboarded });
      if (dropped > 0) this.note({ kind: 'dropped', groupId, numPages: dropped });
    }
    const suspended = preemptions.numSuspensions - (last?.preemptions.numSuspensions ?? 0);
    const released = preemptions.numReleases - (last?.preemptions.numReleases ?? 0);
    if (suspended + released > 0) this.note({ kind: 'preempted', suspended, released });
    const loaded = (outside?.loadedTokens ?? 0) - (last?.outside?.loadedTokens ?? 0);
    const saved = (outside?.savedTokens ?? 0) - (last?.outside?.savedTokens ?? 0);
    if (loaded > 0) this.note({ kind: 'loaded', numTokens: loaded });
    if (saved > 0) this.note({ kind: 'saved', numTokens: saved });
  }
}
