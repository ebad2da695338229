import { NONE } from '../columns.ts';
import { type PageId, QUEUED_DROPPABLE, QUEUED_HELD } from '../page/page-table.ts';
import type { StorageManager } from '../storage/storage-manager.ts';
import { InvariantError } from '../testing/invariant-error.ts';
import type { Offload } from './offload.ts';

/** How many held pages in a queue may not be moved all the same. */
export type Shielded = (tier: number, group: number) => number;

const nothingShielded: Shielded = () => 0;

/**
 * Makes room in a tier by sending pages to the next colder one, which makes room in the same way, down to the last, where they
 * are dropped.
 *
 * Victims go by the order of their queues. A droppable one is dropped where the next tier has no room for it, or where too much
 * is under way already. A held one goes to the first colder tier that takes it, past full ones if need be; one that finds no
 * room at all is passed over as long as droppable ones are left: to fail a step for its sake would help nobody.
 *
 * `canFree` says whether `free` will do, before anything changes. It counts on droppable pages where it can; only what these
 * do not cover must be held pages that go down.
 */
export class Evictor {
  readonly #storage: StorageManager;
  readonly #offload: Offload;
  /** Staging bytes that held pages on this call's list will need; all others must leave them. */
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
    if (storage.tiers[tier].groups.every(({ numDroppable }, group) => shortages[group] <= numDroppable)) return true;
    const incoming = new Map<number, number>();
    let bytes = 0;
    for (let group = 0; group < shortages.length; group++) {
      const { numDroppable, held: queue, slotBytes } = storage.tiers[tier].groups[group];
      const held = shortages[group] - numDroppable;
      if (held <= 0) continue;
      if (held > queue.count - shielded(tier, group)) return false;
      const below = this.#groupBelow(tier, group);
      incoming.set(below, (incoming.get(below) ?? 0) + held);
      bytes += held * slotBytes;
    }
    for (const [group, count] of incoming) if (!this.#reserveBelow(tier, group, count)) return false;
    return inTime || bytes === 0 || bytes <= storage.staging.free;
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
      groups.forEach((home, group) => {
        while (home.slots.free < wanted[group]) storage.drop(this.#victim(home.droppable.first(), tier, group));
      });
      return;
    }
    if (groups.every(({ slots }, group) => slots.free >= wanted[group])) return;
    try {
      this.#sendIndispensable(tier, wanted);
      groups.forEach((home, group) => {
        while (home.slots.free < wanted[group]) this.#evictNext(tier, group, wanted, frugal);
      });
    } finally {
      this.#offload.flush();
    }
  }

  /** @throws {InvariantError} when a policy that `free` would ask in a tier, or for it in colder ones, is not what it should be */
  checkPolicies(tier: number): void {
    const { tiers } = this.#storage;
    for (let asked = tier; asked < tiers.length; asked++) for (const group of tiers[asked].groups) group.checkPolicy();
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

  /** Makes as much as it can of such room now, at least one slot of it; again, once something has landed, it can do more. */
  freeSome(tier: number, wanted: Int32Array): void {
    const { groups } = this.#storage.tiers[tier];
    const missing = wanted.map((count, group) => Math.max(0, count - groups[group].slots.free));
    let shortages = missing;
    while (!this.canFree(tier, shortages)) shortages = shortages.map((count) => count >> 1);
    // One page of every group may be too much at once, where one page of one group is not.
    for (let group = 0; group < groups.length && shortages.every((count) => count === 0); group++) {
      const one = missing.map((count, other) => (other === group ? Math.min(1, count) : 0));
      if (this.canFree(tier, one)) shortages = one;
    }
    this.free(
      tier,
      shortages.map((count, group) => groups[group].slots.free + count),
    );
  }

  /**
   * A slot of the first colder tier for a copy of a page of the device, or NONE. Nobody holds the copy, so it takes the room of
   * what is worth no more.
   */
  slotForCopy(page: PageId, priority: number): number {
    const storage = this.#storage;
    if (storage.lastTier === 0 || storage.staging.free < storage.bytesOf(page)) return NONE;
    return this.#slot(1, storage.groupIn(1, storage.pages.lifecycle[page]), priority);
  }

  /** Sends down the held pages without which droppable ones do not suffice, before what nobody holds takes the room below. */
  #sendIndispensable(tier: number, wanted: Int32Array): void {
    const { groups } = this.#storage.tiers[tier];
    const pages: PageId[] = [];
    this.#reserved = 0;
    groups.forEach(({ slots, numDroppable, held, slotBytes }, group) => {
      let missing = wanted[group] - slots.free - numDroppable;
      if (missing <= 0) return;
      this.#reserved += missing * slotBytes;
      for (const page of held) {
        pages.push(page);
        if (--missing === 0) break;
      }
    });
    for (const page of pages) this.#sendListed(page, tier);
    this.#reserved = 0;
  }

  /** One page of a pool group leaves a tier that is not the last. */
  #evictNext(tier: number, group: number, wanted: Int32Array, frugal: boolean): void {
    const storage = this.#storage;
    const home = storage.tiers[tier].groups[group];
    const mayGo = !frugal && this.#roomBelow(tier, this.#groupBelow(tier, group)) > 0;
    if (mayGo) {
      const next = home.first();
      if (next !== NONE && storage.pages.queued[next] === QUEUED_HELD && this.#sendHeld(next, tier)) return;
    }
    const victim = this.#victim(home.droppable.first(), tier, group);
    if (frugal || !this.#allMayGo(tier, wanted)) storage.dropFor(victim);
    else this.#sendOrDrop(victim, tier);
  }

  #victim(page: PageId, tier: number, group: number): PageId {
    if (page !== NONE) return page;
    throw new InvariantError([`pool group ${group} of tier ${tier} has room, but its eviction policy names no page`]);
  }

  /**
   * Whether all pages that still have to leave a tier can go down. Where not, the first of them are dropped: they were let go
   * earlier, or stand further back in their sequence, and would be of no use without the others.
   */
  #allMayGo(tier: number, wanted: Int32Array): boolean {
    const storage = this.#storage;
    const { groups } = storage.tiers[tier];
    const below = storage.tiers[tier + 1].groups;
    let bytes = storage.staging.free;
    for (let cold = 0; cold < below.length; cold++) {
      let room = below[cold].slots.free + below[cold].numDroppable;
      for (let group = 0; group < groups.length; group++) {
        const missing = wanted[group] - groups[group].slots.free;
        if (missing <= 0 || this.#groupBelow(tier, group) !== cold) continue;
        room -= missing;
        bytes -= missing * groups[group].slotBytes;
      }
      if (room < 0) return false;
    }
    return bytes >= 0;
  }

  /** A held page that this call counts on goes down: to the next tier, or past it. */
  #sendListed(page: PageId, tier: number): void {
    const storage = this.#storage;
    for (let below = tier + 1; below <= storage.lastTier; below++) {
      const slot = this.#slot(below, storage.groupIn(below, storage.pages.lifecycle[page]), storage.pages.priority[page], true);
      if (slot === NONE) continue;
      this.#reserved -= storage.bytesOf(page);
      this.#offload.send(page, below, slot);
      return;
    }
    throw new InvariantError([`page ${page} was to leave tier ${tier} and finds no room below`]);
  }

  /** A held page goes down, if that takes nothing from those that this call counts on. */
  #sendHeld(page: PageId, tier: number): boolean {
    if (!this.#mayStage(page)) return false;
    const { pages } = this.#storage;
    const slot = this.#slot(tier + 1, this.#storage.groupIn(tier + 1, pages.lifecycle[page]), pages.priority[page], true);
    if (slot === NONE) return false;
    this.#offload.send(page, tier + 1, slot);
    return true;
  }

  /** A droppable page goes down if it can, else it vanishes. */
  #sendOrDrop(page: PageId, tier: number): void {
    const storage = this.#storage;
    const { pages } = storage;
    if (storage.passesDown(tier) && !storage.landings.has(page) && this.#mayStage(page)) {
      const below = storage.groupIn(tier + 1, pages.lifecycle[page]);
      const slot = this.#slot(tier + 1, below, pages.priority[page]);
      if (!this.#isDroppable(page, tier)) {
        // What made room for it took it out of the tree.
        if (slot !== NONE) storage.tiers[tier + 1].groups[below].slots.release(slot);
        return;
      }
      if (slot !== NONE) {
        this.#offload.send(page, tier + 1, slot);
        return;
      }
    }
    storage.dropFor(page);
  }

  /** A slot of a colder tier, free or made free; NONE when there is none for a page of that priority. */
  #slot(tier: number, group: number, priority: number, isHeld = false): number {
    const home = this.#storage.tiers[tier].groups[group];
    if (home.slots.free === 0 && !this.#displace(tier, group, priority, isHeld)) return NONE;
    return this.#reserve(tier, group, 1) ? home.take() : NONE;
  }

  /** Makes one slot of a colder tier free. What nobody holds does not displace what matters more. */
  #displace(tier: number, group: number, priority: number, isHeld: boolean): boolean {
    const home = this.#storage.tiers[tier].groups[group];
    // Where one held page finds no way on, none does: all take the same bytes.
    const next = home.first();
    if (next !== NONE && this.#storage.pages.queued[next] === QUEUED_HELD && this.#sendHeld(next, tier)) return true;
    const page = home.droppable.first();
    if (page === NONE || (!isHeld && this.#storage.pages.priority[page] > priority)) return false;
    this.#sendOrDrop(page, tier);
    return home.slots.free > 0;
  }

  #isDroppable(page: PageId, tier: number): boolean {
    const { pages } = this.#storage;
    return pages.isLive(page) && pages.tier[page] === tier && pages.queued[page] === QUEUED_DROPPABLE;
  }

  /** Whether a page may set out besides those that this call counts on. */
  #mayStage(page: PageId): boolean {
    return this.#storage.staging.free - this.#reserved >= this.#storage.bytesOf(page);
  }

  /** Held pages that the colder tiers together can take in: as many as have no held page there yet. */
  #roomBelow(tier: number, group: number): number {
    let room = 0;
    for (let below = tier + 1; below <= this.#storage.lastTier; below++) {
      const { slots, numDroppable } = this.#storage.tiers[below].groups[group];
      room += slots.free + numDroppable;
    }
    return room;
  }

  /** Whether the colder tiers have room for so many held pages, and memory. */
  #reserveBelow(tier: number, group: number, count: number): boolean {
    let left = count;
    for (let below = tier + 1; left > 0 && below <= this.#storage.lastTier; below++) {
      const { slots, numDroppable } = this.#storage.tiers[below].groups[group];
      const here = Math.min(left, slots.free + numDroppable);
      if (here > 0 && this.#reserve(below, group, here)) left -= here;
    }
    return left === 0;
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
