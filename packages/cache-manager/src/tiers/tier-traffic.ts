import { NONE } from '../columns.ts';
import type { EventRecorder } from '../events/event-recorder.ts';
import { contentHash } from '../eviction/eviction-view.ts';
import type { PageId } from '../page/page-table.ts';
import type { TierNeeds } from '../rebalance/tier-needs.ts';
import type { StatisticsRecorder } from '../statistics/statistics-recorder.ts';
import type { PageTraffic, StorageManager } from '../storage/storage-manager.ts';
import type { BlockTable } from '../tree/block-table.ts';

/** Counts what goes between tiers, notes what tiers were short of, and tells it to whoever listens to events. */
export class TierTraffic implements PageTraffic {
  readonly #storage: StorageManager;
  readonly #recorder: StatisticsRecorder;
  readonly #events: EventRecorder | null;
  readonly #needs: readonly TierNeeds[];
  readonly #blocks: BlockTable;

  constructor(parts: {
    storage: StorageManager;
    recorder: StatisticsRecorder;
    events: EventRecorder | null;
    needs: readonly TierNeeds[];
    blocks: BlockTable;
  }) {
    this.#storage = parts.storage;
    this.#recorder = parts.recorder;
    this.#events = parts.events;
    this.#needs = parts.needs;
    this.#blocks = parts.blocks;
  }

  moved(page: PageId, from: number, to: number): void {
    if (from === 0) this.#recorder.moved('offloaded', this.#groupOf(page), 1);
    else if (to === 0) this.#recorder.moved('onboarded', this.#groupOf(page), 1);
    if (from < to) this.#left(page, from);
    else this.#returned(page, from, to);
    this.swapped(page, from, to);
  }

  swapped(page: PageId, from: number, to: number): void {
    if (this.#storage.pages.block[page] !== NONE) this.#events?.moved(page, from, to);
  }

  copied(page: PageId, to: number): void {
    if (to === 0) this.#recorder.moved('onboarded', this.#groupOf(page), 1);
  }

  leaving(page: PageId): void {
    this.#left(page, this.#storage.pages.tier[page]);
  }

  refused(poolGroup: number, slots: number): void {
    this.#needs[0].refused(poolGroup, slots);
  }

  dropped(page: PageId): void {
    const tier = this.#storage.pages.tier[page];
    this.#needs[tier].dropped(this.#storage.groupIn(tier, this.#groupOf(page)));
    if (tier > 0) this.#recorder.moved('dropped', this.#groupOf(page), 1);
  }

  #left(page: PageId, tier: number): void {
    if (this.#storage.pages.block[page] === NONE) return;
    this.#needs[tier].left(this.#storage.groupIn(tier, this.#groupOf(page)), this.#hashOf(page));
  }

  /** All tiers on its way back would have had it, had they been larger. */
  #returned(page: PageId, from: number, to: number): void {
    if (this.#storage.pages.block[page] === NONE) return;
    const bytes = this.#storage.bytesOf(page);
    for (let tier = to; tier < from; tier++) {
      const needs = this.#needs[tier];
      if (!needs.passesDown) continue;
      needs.worked(bytes);
      needs.missed(this.#storage.groupIn(tier, this.#groupOf(page)), this.#hashOf(page), bytes);
    }
  }

  #hashOf(page: PageId): number {
    return contentHash(this.#blocks.pathHash[this.#storage.pages.block[page]], this.#groupOf(page));
  }

  #groupOf(page: PageId): number {
    return this.#storage.pages.lifecycle[page];
  }
}
