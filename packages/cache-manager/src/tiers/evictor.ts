import { NONE } from '../columns.ts';
import { type PageId, QUEUED_DROPPABLE } from '../page/page-table.ts';
import type { StorageManager } from '../storage/storage-manager.ts';
import { InvariantError } from '../testing/invariant-error.ts';
import type { Offload } from './offload.ts';

/** How many held pages of a pool group may not be moved, besides those that are in no queue. */
export type Shielded = (tier: number, group: number) => number;

const nothingShielded: Shielded = () => 0;

/**
 * Makes room in a tier by sending pages to the next colder one, which makes room in the same way, down to the last, where they
 * are dropped.
 *
 * Victims go by the order of their queue. A droppable one is dropped where nothing colder has room for it, or where too much
 * is under way already. A held one that finds no room below is passed over as long as droppable ones are left: to fail a step
 * for its sake would help nobody.
 *
 * `canFree` says whether `free` will do, before anything changes. It counts on droppable pages alone where it can; only what
 * these do not cover must be held pages that go down.
 */
export class Evictor {
  readonly #storage: StorageManager;
  readonly #offload: Offload;
  /** Staging bytes that held pages on this call's list will need; droppable ones must leave them. */
  #reserved = 0;

  constructor(storage: StorageManager, offload: Offload) {
    this.#storage = storage;
    this.#offload = offload;
  }

  /**
   * Whether so many more slots of each pool group of a tier can be made free at once, or, with `inTime`, after waiting for
   * bytes that are under way.
   */
  canFree(tier: number, shortages: Int32Array, shielded: Shielded = nothingShielded, inTime = false): boolean {
    const storage = this.#storage;
    const incoming = new Map<number, number>();
    for (let group = 0; group < shortages.length; group++) {
      const { numDroppable, numHeld } = storage.tiers[tier].groups[group];
      const held = shortages[group] - numDroppable;
      if (held <= 0) continue;
      if (held > numHeld - shielded(tier, group)) return false;
      const below = this.#groupBelow(tier, group);
      incoming.set(below, (incoming.get(below) ?? 0) + held);
    }
    let bytes = 0;
    for (const [group, count] of incoming) {
      if (count > this.roomIn(tier + 1, group, shielded) || !this.#reserveFor(tier + 1, group, count)) return false;
      bytes += this.#stagingFor(tier + 1, group, count);
    }
    return inTime || bytes <= storage.staging.free;
  }

  /** Pages that the next warmer tier could send to a pool group at once, were there no bound on bytes under way. */
  roomIn(tier: number, group: number, shielded: Shielded = nothingShielded): number {
    const storage = this.#storage;
    if (tier > storage.lastTier) return 0;
    const { slots, numDroppable, numHeld } = storage.tiers[tier].groups[group];
    const held = numHeld - shielded(tier, group);
    return slots.free + numDroppable + (held > 0 ? Math.min(held, this.roomIn(tier + 1, group, shielded)) : 0);
  }

  /**
   * Evicts until every pool group of a tier has the wanted slots free. Only after `canFree`.
   *
   * @param frugal more room is wanted in a moment: nothing goes down that need not
   */
  free(tier: number, wanted: Int32Array, frugal = false): void {
    const storage = this.#storage;
    const { groups } = storage.tiers[tier];
    if (tier === storage.lastTier) {
      groups.forEach(({ slots, queue }, group) => {
        while (slots.free < wanted[group]) storage.drop(queue.first());
      });
      return;
    }
    if (groups.every(({ slots }, group) => slots.free >= wanted[group])) return;
    const victims = this.#chooseVictims(tier, wanted, frugal);
    // Held pages first: what nobody holds must not take the room below that they need.
    for (const page of victims.held) {
      if (!this.#sendHeld(page, tier, true))
        throw new InvariantError([`page ${page} was to leave tier ${tier} and finds no room below`]);
    }
    this.#reserved = 0;
    for (const page of victims.droppable) {
      // Dropping one page may take others along, of this list too.
      if (!this.#isDroppable(page, tier)) continue;
      const group = storage.groupIn(tier, storage.pages.lifecycle[page]);
      if (groups[group].slots.free >= wanted[group]) continue;
      if (frugal) storage.drop(page);
      else this.#sendOrDrop(page, tier);
    }
    this.#offload.flush();
  }

  /** Makes so many slots of one pool group of the device free, if that can be done at once. `frugal`: see `free`. */
  tryFree(poolGroup: number, count: number, frugal = false): boolean {
    const { slots } = this.#storage.poolGroups[poolGroup];
    if (slots.free >= count) return true;
    const one = new Int32Array(this.#storage.poolGroups.length);
    one[poolGroup] = count - slots.free;
    if (!this.canFree(0, one)) return false;
    one[poolGroup] = count;
    this.free(0, one, frugal);
    return true;
  }

  /** Makes as much as it can of such room now; again, once something has landed, it can do more. */
  freeSome(tier: number, wanted: Int32Array): void {
    const { groups } = this.#storage.tiers[tier];
    let shortages = wanted.map((count, group) => Math.max(0, count - groups[group].slots.free));
    while (!this.canFree(tier, shortages)) shortages = shortages.map((count) => count >> 1);
    this.free(
      tier,
      shortages.map((count, group) => groups[group].slots.free + count),
    );
  }

  /**
   * A slot of the next colder tier for a page of the device's that is to be copied there, or NONE. Nobody holds the copy yet,
   * so it takes the room of what is worth no more.
   */
  slotForCopy(page: PageId, priority: number): number {
    const storage = this.#storage;
    if (storage.lastTier === 0 || storage.staging.free < storage.bytesOf(page)) return NONE;
    return this.#slot(1, storage.groupIn(1, storage.pages.lifecycle[page]), priority, false);
  }

  #chooseVictims(tier: number, wanted: Int32Array, frugal: boolean): { held: PageId[]; droppable: PageId[] } {
    const storage = this.#storage;
    const { pages } = storage;
    const { groups } = storage.tiers[tier];
    const must = groups.map(({ slots, numDroppable }, group) => Math.max(0, wanted[group] - slots.free - numDroppable));
    // Held pages that may go although droppable ones would do: by the order of the queue they are due.
    const spare = storage.tiers[tier + 1].groups.map((_, group) => (frugal ? 0 : this.roomIn(tier + 1, group)));
    let bytes = 0;
    must.forEach((count, group) => {
      const below = this.#groupBelow(tier, group);
      spare[below] -= count;
      bytes += this.#stagingFor(tier + 1, below, count);
    });
    this.#reserved = bytes;
    let spareBytes = storage.staging.free - bytes;
    const held: PageId[] = [];
    const droppable: PageId[] = [];
    groups.forEach(({ slots, queue, slotBytes }, group) => {
      const below = this.#groupBelow(tier, group);
      let missing = wanted[group] - slots.free;
      if (missing <= 0) return;
      for (const page of queue) {
        if (pages.queued[page] === QUEUED_DROPPABLE) droppable.push(page);
        else if (must[group] > 0) {
          must[group]--;
          held.push(page);
        } else if (spare[below] > 0 && spareBytes >= slotBytes && this.#reserve(tier + 1, below, 1)) {
          spare[below]--;
          spareBytes -= slotBytes;
          this.#reserved += slotBytes;
          held.push(page);
        } else continue;
        if (--missing === 0) break;
      }
    });
    return { held, droppable };
  }

  /** A droppable page goes down if it can, else it vanishes. */
  #sendOrDrop(page: PageId, tier: number): void {
    const storage = this.#storage;
    if (storage.passesDown(tier) && storage.pages.landing[page] === 0 && this.#mayStage(page)) {
      const below = storage.groupIn(tier + 1, storage.pages.lifecycle[page]);
      const slot = this.#slotBelow(tier, page, false);
      if (!this.#isDroppable(page, tier)) {
        // What made room for it took it out of the tree.
        if (slot !== NONE) this.#releaseBelow(tier, below, slot);
        return;
      }
      if (slot !== NONE) {
        this.#offload.send(page, slot);
        return;
      }
    }
    storage.drop(page);
  }

  /** A held page goes down, if it can. `must`: it is on the list of this call, and counted on. */
  #sendHeld(page: PageId, tier: number, must: boolean): boolean {
    if (!must && !this.#mayStage(page)) return false;
    const slot = this.#slotBelow(tier, page, must);
    if (slot === NONE) return false;
    if (must) this.#reserved -= this.#storage.bytesOf(page);
    this.#offload.send(page, slot);
    return true;
  }

  #slotBelow(tier: number, page: PageId, must: boolean): number {
    const below = this.#storage.groupIn(tier + 1, this.#storage.pages.lifecycle[page]);
    return this.#slot(tier + 1, below, this.#storage.pages.priority[page], must);
  }

  /** A slot of a colder tier, free or made free; NONE when there is none for a page of that priority. */
  #slot(tier: number, group: number, priority: number, must: boolean): number {
    const home = this.#storage.tiers[tier].groups[group];
    if (home.slots.free === 0 && !this.#displace(tier, group, priority, must)) return NONE;
    return this.#reserve(tier, group, 1) ? home.take() : NONE;
  }

  /** Makes one slot of a colder tier free. Nobody's page does not displace what matters more. */
  #displace(tier: number, group: number, priority: number, must: boolean): boolean {
    const { pages } = this.#storage;
    const { queue, slots } = this.#storage.tiers[tier].groups[group];
    for (const page of queue) {
      if (pages.queued[page] === QUEUED_DROPPABLE) {
        if (!must && pages.priority[page] > priority) return false;
        this.#sendOrDrop(page, tier);
        return slots.free > 0;
      }
      if (this.#sendHeld(page, tier, false)) return true;
    }
    if (!must) return false;
    for (const page of queue) if (this.#sendHeld(page, tier, true)) return true;
    return false;
  }

  #releaseBelow(tier: number, group: number, slot: number): void {
    this.#storage.tiers[tier + 1].groups[group].slots.release(slot);
  }

  #isDroppable(page: PageId, tier: number): boolean {
    const { pages } = this.#storage;
    return pages.isLive(page) && pages.tier[page] === tier && pages.queued[page] === QUEUED_DROPPABLE;
  }

  /** Whether a page may set out besides those that this call counts on. */
  #mayStage(page: PageId): boolean {
    return this.#storage.staging.free - this.#reserved >= this.#storage.bytesOf(page);
  }

  /** Bytes that will be under way when so many pages enter a pool group and push others further down. */
  #stagingFor(tier: number, group: number, count: number): number {
    if (tier > this.#storage.lastTier || count <= 0) return 0;
    const { slots, numDroppable, slotBytes } = this.#storage.tiers[tier].groups[group];
    return count * slotBytes + this.#stagingFor(tier + 1, group, count - slots.free - numDroppable);
  }

  /** Makes sure that there is memory for pages that enter a pool group, and for those that they push further down. */
  #reserveFor(tier: number, group: number, count: number): boolean {
    if (tier > this.#storage.lastTier || count <= 0) return true;
    const { slots, numDroppable } = this.#storage.tiers[tier].groups[group];
    return this.#reserve(tier, group, count) && this.#reserveFor(tier + 1, group, count - slots.free - numDroppable);
  }

  /** Makes sure that there is memory for more pages. */
  #reserve(tier: number, group: number, count: number): boolean {
    const { memory, groups } = this.#storage.tiers[tier];
    return memory === null || memory.reserve(group, Math.min(groups[group].slots.slots, groups[group].numUsed + count));
  }

  /** The pool group in every colder tier of a pool group of this one. */
  #groupBelow(tier: number, group: number): number {
    return tier === 0 ? this.#storage.poolGroups[group].coldGroup : group;
  }
}
