import type { Clock } from '../clock.ts';
import type { TransferTimes } from '../transfer/transfer-times.ts';

/** One try of a request, as the table sees it. */
interface TableEntry {
  readonly request: string;
  readonly generation: number;
  /** Whether it may still do something by itself. */
  readonly isOpen: boolean;
  tick(): void;
}

/**
 * The tries of requests that an end knows: those that are open, bounded, and for a lease those that are over, which still answer late words.
 * Keeps the time for all of them.
 */
export class TransferTable<Entry extends TableEntry> {
  readonly #entries = new Map<string, { entry: Entry; endedMs: number | null }>();
  readonly #maxOpen: number;
  readonly #times: TransferTimes;
  readonly #clock: Clock;
  #stop: (() => void) | null = null;

  constructor({ maxTransfers, times, clock }: { maxTransfers: number; times: TransferTimes; clock: Clock }) {
    this.#maxOpen = maxTransfers;
    this.#times = times;
    this.#clock = clock;
  }

  get numOpen(): number {
    let count = 0;
    for (const { entry } of this.#entries.values()) if (entry.isOpen) count++;
    return count;
  }

  get isFull(): boolean {
    return this.numOpen >= this.#maxOpen;
  }

  get(request: string, generation: number): Entry | undefined {
    return this.#entries.get(keyOf(request, generation))?.entry;
  }

  /** The tries of a request. */
  of(request: string): Entry[] {
    return this.all().filter((entry) => entry.request === request);
  }

  all(): Entry[] {
    return [...this.#entries.values()].map(({ entry }) => entry);
  }

  add(entry: Entry): void {
    this.#entries.set(keyOf(entry.request, entry.generation), { entry, endedMs: null });
    this.#dropOldest();
    this.#schedule();
  }

  /** Forgets all of them, and keeps no time any more. */
  clear(): void {
    this.#entries.clear();
    this.#stop?.();
    this.#stop = null;
  }

  #schedule(): void {
    if (this.#stop !== null || this.#entries.size === 0) return;
    this.#stop = this.#clock.after(this.#times.retryMs / 2, () => {
      this.#stop = null;
      this.#tick();
      this.#schedule();
    });
  }

  #tick(): void {
    const nowMs = this.#clock.now();
    for (const [key, known] of [...this.#entries]) {
      known.entry.tick();
      if (known.entry.isOpen) continue;
      known.endedMs ??= nowMs;
      if (nowMs - known.endedMs >= this.#times.leaseMs) this.#entries.delete(key);
    }
  }

  /** What is over gives way, the oldest first, when there is more of it than may be open. */
  #dropOldest(): void {
    let ended = this.#entries.size - this.numOpen - this.#maxOpen;
    for (const [key, { entry }] of this.#entries) {
      if (ended <= 0) return;
      if (entry.isOpen) continue;
      this.#entries.delete(key);
      ended--;
    }
  }
}

function keyOf(request: string, generation: number): string {
  return `${generation} ${request}`;
}
