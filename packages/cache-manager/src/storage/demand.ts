import { type PageId, QUEUED_HELD } from '../page/page-table.ts';
import type { Evictor, Shielded } from '../tiers/evictor.ts';
import type { StorageManager } from './storage-manager.ts';

/** Slots of one tier that a step wants and gives back, by pool group. Filled and judged before anything changes. */
export class Demand {
  readonly #storage: StorageManager;
  readonly #evictor: Evictor;
  readonly #tier: number;
  readonly #wanted: Int32Array;
  readonly #returned: Int32Array;
  /** Of those, slots of pages that wait in no queue now. */
  readonly #returnedIdle: Int32Array;
  /** Pages that wait in no queue, are not in use, and that the step is to use. */
  readonly #own: Int32Array;
  readonly #shortages: Int32Array;
  /** Held pages in queues that must stay where they are, by tier and pool group. */
  readonly #shielded: readonly Int32Array[];
  readonly #isShielded: Shielded;

  constructor(storage: StorageManager, evictor: Evictor, tier = 0) {
    this.#storage = storage;
    this.#evictor = evictor;
    this.#tier = tier;
    const numGroups = storage.tiers[tier].groups.length;
    this.#wanted = new Int32Array(numGroups);
    this.#returned = new Int32Array(numGroups);
    this.#returnedIdle = new Int32Array(numGroups);
    this.#own = new Int32Array(numGroups);
    this.#shortages = new Int32Array(numGroups);
    this.#shielded = storage.tiers.map(({ groups }) => new Int32Array(groups.length));
    this.#isShielded = (inTier, group) => this.#shielded[inTier][group];
  }

  reset(): void {
    this.#storage.expire();
    // By hand: for so few entries `fill` costs more than it does.
    for (let group = 0; group < this.#wanted.length; group++) {
      this.#wanted[group] = 0;
      this.#returned[group] = 0;
      this.#returnedIdle[group] = 0;
      this.#own[group] = 0;
    }
    for (const counts of this.#shielded) for (let group = 0; group < counts.length; group++) counts[group] = 0;
  }

  want(poolGroup: number, count: number): void {
    this.#wanted[poolGroup] += count;
  }

  /** Slots without a page that the step will set free before it takes any. */
  giveBack(poolGroup: number, count: number): void {
    this.#returned[poolGroup] += count;
    this.#returnedIdle[poolGroup] += count;
  }

  /** A page that the step will set free, or leave to eviction, before it takes any slot: nobody else holds it. */
  giveBackPage(page: PageId): void {
    const { pages } = this.#storage;
    if (pages.tier[page] !== this.#tier || pages.pins[page] > 0) return;
    const poolGroup = this.#storage.groupIn(this.#tier, pages.lifecycle[page]);
    this.#returned[poolGroup]++;
    if (pages.queued[page] === QUEUED_HELD) this.#shielded[this.#tier][poolGroup]++;
    else this.#returnedIdle[poolGroup]++;
  }

  /** A page that the step needs where it is: it is no room for the step. To be told of once. */
  shield(page: PageId): void {
    const { pages } = this.#storage;
    const tier = pages.tier[page];
    const group = this.#storage.groupIn(tier, pages.lifecycle[page]);
    if (pages.queued[page] === QUEUED_HELD) this.#shielded[tier][group]++;
    else if (tier === this.#tier && pages.locks[page] === 0) this.#own[group]++;
  }

  /**
   * Whether free, evictable and returned slots cover what is wanted everywhere.
   *
   * @throws {InvariantError} when a policy of the caller has failed
   */
  fits(): boolean {
    let short = false;
    for (let group = 0; group < this.#wanted.length; group++) {
      const missing = this.#wanted[group] - this.#storage.tiers[this.#tier].groups[group].slots.free - this.#returned[group];
      this.#shortages[group] = Math.max(0, missing);
      if (missing > 0) short = true;
    }
    if (!short) return true;
    this.#evictor.checkPolicies(this.#tier);
    if (this.#evictor.canFree(this.#tier, this.#shortages, this.#isShielded)) return true;
    if (this.#tier === 0) this.#tellShortages();
    return false;
  }

  #tellShortages(): void {
    for (let group = 0; group < this.#shortages.length; group++) {
      const missing = this.#shortages[group] - this.#storage.evictable(group);
      if (missing > 0) this.#storage.traffic?.refused(group, missing);
    }
  }

  /** Whether what does not fit now does once pages have left one after the other. Only after `fits` has said no. */
  fitsInRounds(): boolean {
    return this.#evictor.canFree(this.#tier, this.#shortages, this.#isShielded, true);
  }

  /** Lets pages leave as far as that can be done now. Once they have landed, the demand is to be judged anew. */
  makeSomeRoom(): void {
    this.#evictor.freeSome(this.#tier, this.#wanted);
  }

  /**
   * Whether some growing pool group of the device is used beyond `maxUtil` already. What the step gives back does not count,
   * nor do the pages that it is to use itself: a request that has the device to itself must always get back onto it.
   */
  isSaturated(maxUtil: number): boolean {
    return this.#storage.poolGroups.some(({ grows, slots }, group) => {
      const used = this.#storage.unavailable(group) - this.#returnedIdle[group] - this.#own[group];
      if (!grows || used <= maxUtil * slots.slots) return false;
      this.#storage.traffic?.refused(group, Math.ceil(used / maxUtil) - slots.slots);
      return true;
    });
  }

  /** Evicts until every pool group has the wanted slots free. Only after `fits`, with the returned slots given back. */
  makeRoom(): void {
    this.#evictor.free(this.#tier, this.#wanted);
  }
}
