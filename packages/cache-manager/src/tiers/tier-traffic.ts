import { NONE } from '../columns.ts';
import type { EventRecorder } from '../events/event-recorder.ts';
import type { PageId } from '../page/page-table.ts';
import type { StatisticsRecorder } from '../statistics/statistics-recorder.ts';
import type { PageTraffic, StorageManager } from '../storage/storage-manager.ts';

/** Counts what goes between tiers, and tells it to whoever listens to events. */
export class TierTraffic implements PageTraffic {
  readonly #storage: StorageManager;
  readonly #recorder: StatisticsRecorder;
  readonly #events: EventRecorder | null;

  constructor(storage: StorageManager, recorder: StatisticsRecorder, events: EventRecorder | null) {
    this.#storage = storage;
    this.#recorder = recorder;
    this.#events = events;
  }

  moved(page: PageId, from: number, to: number): void {
    if (from === 0) this.#recorder.moved('offloaded', this.#groupOf(page), 1);
    else if (to === 0) this.#recorder.moved('onboarded', this.#groupOf(page), 1);
    this.swapped(page, from, to);
  }

  swapped(page: PageId, from: number, to: number): void {
    if (this.#storage.pages.block[page] !== NONE) this.#events?.moved(page, from, to);
  }

  copied(page: PageId, to: number): void {
    if (to === 0) this.#recorder.moved('onboarded', this.#groupOf(page), 1);
  }

  dropped(page: PageId): void {
    this.#recorder.moved('dropped', this.#groupOf(page), 1);
  }

  #groupOf(page: PageId): number {
    return this.#storage.pages.lifecycle[page];
  }
}
