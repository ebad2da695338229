import type { StorageLayout, TierPlan } from '@bufferwise/scratch-allocator';
import { NONE } from '../columns.ts';
import { contentHash } from '../eviction/eviction-view.ts';
import { Expiries } from '../eviction/expiries.ts';
import { DEFAULT_PRIORITY, LruQueue } from '../eviction/lru-queue.ts';
import { FOREVER, type PageId, PageTable, QUEUED_DROPPABLE, QUEUED_HELD, QUEUED_NOT, rowOf } from '../page/page-table.ts';
import type { PageDevice, PoolMemory } from '../ports/page-device.ts';
import type { GroupRules } from '../request/group-rules.ts';
import type { Boarding } from '../tiers/boarding.ts';
import type { ColdMemory } from '../tiers/cold-memory.ts';
import { Landings } from '../tiers/landings.ts';
import { StagingBudget } from '../tiers/staging-budget.ts';
import { DeviceGroup, type QueueFactory, type Tier, TierGroup } from './tier.ts';

export interface StorageOptions {
  layout: StorageLayout;
  groups: readonly GroupRules[];
  /** Index = tier. */
  plans: readonly TierPlan[];
  device: PageDevice;
  /** The memory of the colder tiers; entry 0 is unused. */
  memories: readonly (ColdMemory | null)[];
  /** See `StagingBudget`. */
  stagingBytes: number;
  /** Default: least recently used first. */
  createQueue?: QueueFactory;
  /** Milliseconds that never fall. */
  now?: () => number;
}

/** What a column of bytes counts. */
const MAX_REUSES = 255;

/** Told of what happens to pages on their way between tiers, once it is certain. */
export interface PageTraffic {
  /** A page is in another tier from now on. Its block, if any, lists it as before. */
  moved(page: PageId, from: number, to: number): void;
  /** The same, without its bytes being carried. */
  swapped(page: PageId, from: number, to: number): void;
  /** A copy of a page has come into another tier. */
  copied(page: PageId, to: number): void;
  /** A listed page is about to be chosen to be dropped, to make room for another. */
  leaving(page: PageId): void;
  /** A page is about to be dropped to make room, chosen itself or lost with the one that was. */
  dropped(page: PageId): void;
  /** A step found a pool group of the device short of so many slots. */
  refused(poolGroup: number, slots: number): void;
}

/**
 * Slots of all tiers, and the life of pages between being created and being freed.
 *
 * | a page is | because | so it may |
 * | --- | --- | --- |
 * | locked | an active request holds it; it is on the device | neither move nor vanish |
 * | held | suspended requests hold it, and no active one | move to a colder tier, so not from the last |
 * | droppable | only the tree lists it | move to a colder tier, or vanish |
 *
 * What is neither held nor listed is freed at once. Whatever may leave its tier waits in the queue of its pool group there;
 * a page that a move under way needs (pinned), and a held one that has not landed, wait nowhere.
 */
export class StorageManager {
  readonly pages = new PageTable();
  readonly tiers: readonly Tier[];
  readonly poolGroups: readonly DeviceGroup[];
  readonly landings = new Landings();
  /** Moves to a warmer tier that are under way. */
  readonly boardings = new Set<Boarding>();
  readonly staging: StagingBudget;
  /** Told of moves and drops; set once by the manager. */
  traffic: PageTraffic | null = null;
  /** Null from when the device is lost until there is another. */
  device: PageDevice | null;
  readonly #groups: readonly GroupRules[];
  readonly #coldGroupOf: Int32Array;
  readonly #passesDown: readonly boolean[];
  /** Slots and queues by tier and lifecycle: entry `tier * groups + lifecycle`. */
  readonly #homes: readonly TierGroup[];
  /** Takes a listed page out of the tree; set once by the manager, which owns both. */
  #removeFromTree: (page: PageId) => void = () => {};
  #ready: Promise<void> | null = null;
  readonly #evictedPages: Float64Array;
  readonly #now: () => number;
  readonly #expiries = new Expiries((page, time) => this.pages.expiresAt[rowOf(page)] === time);
  #releasePins: () => void = () => {};
  #pagesBehind: (page: PageId) => Iterable<PageId> = () => [];
  /** Pages that came into a queue so far. */
  #turn = 0;
  #dropping = false;

  constructor(options: StorageOptions) {
    const { layout, groups, plans, memories, createQueue = (pages) => new LruQueue(pages) } = options;
    this.#now = options.now ?? Date.now;
    this.device = options.device;
    this.#groups = groups;
    this.#evictedPages = new Float64Array(groups.length);
    this.#passesDown = plans.map((_, tier) => passesDown(plans, tier));
    this.#coldGroupOf = Int32Array.from(groups, ({ id }) => layout.coldPoolGroupOf(id));
    this.poolGroups = layout.poolGroups.map(({ pools, lifecycleIds }, index) => {
      return new DeviceGroup(this.pages, {
        numSlots: plans[0].slots[index],
        passesDown: passesDown(plans, 0),
        createQueue,
        poolSlotBytes: pools.map(({ slotBytes }) => slotBytes),
        grows: lifecycleIds.some((id) => groups[id].kind === 'attention'),
        coldGroup: this.#coldGroupOf[lifecycleIds[0]],
      });
    });
    this.tiers = plans.map(({ tier, slots }, index): Tier => {
      if (index === 0) return { kind: tier, groups: this.poolGroups, memory: null };
      const coldGroups = layout.coldPoolGroups.map(
        ({ slotBytes }, group) =>
          new TierGroup(this.pages, { numSlots: slots[group], slotBytes, passesDown: passesDown(plans, index), createQueue }),
      );
      return { kind: tier, groups: coldGroups, memory: memories[index] };
    });
    this.#homes = this.tiers.flatMap((each, tier) => groups.map(({ id }) => each.groups[this.groupIn(tier, id)]));
    const largestPage = Math.max(0, ...this.poolGroups.map(({ slotBytes }) => slotBytes));
    // Less, and a page could never leave its tier.
    this.staging = new StagingBudget(Math.max(options.stagingBytes, largestPage * plans.length));
    const pools = this.createPools(options.device, plans[0].slots);
    this.poolGroups.forEach((group, index) => {
      group.memories = pools[index];
    });
  }

  onEvict(removeFromTree: (page: PageId) => void): void {
    this.#removeFromTree = removeFromTree;
  }

  /** Tells who releases the prefix pins whose time is over. */
  onExpire(releasePins: () => void): void {
    this.#releasePins = releasePins;
  }

  get lastTier(): number {
    return this.tiers.length - 1;
  }

  /**
   * Memory for so many slots of each pool group, none for those that say null. Throws what the device throws; nothing is left of
   * it then.
   */
  createPools(device: PageDevice, slots: readonly (number | null)[]): PoolMemory[][] {
    const created: PoolMemory[] = [];
    try {
      return this.poolGroups.map(({ poolSlotBytes }, group) => {
        const numSlots = slots[group];
        if (numSlots === null) return [];
        return poolSlotBytes.map((slotBytes, pool) => {
          const memory = device.createPool({ label: `pool group ${group} pool ${pool}`, slotBytes, numSlots });
          created.push(memory);
          // Whoever waits for `ready()` hears of it; without anybody waiting it must not end the process.
          memory.ready.catch(() => {});
          return memory;
        });
      });
    } catch (error) {
      for (const memory of created) memory.destroy();
      throw error;
    }
  }

  /** Settles once all pool memory is known to exist. */
  ready(): Promise<void> {
    this.#ready ??= Promise.all(this.poolGroups.flatMap((group) => group.memories.map((memory) => memory.ready))).then(
      () => undefined,
    );
    return this.#ready;
  }

  /** Gives pool groups other memory, which is ready. The content is the caller's business. */
  replacePools(pools: readonly (readonly PoolMemory[])[]): void {
    this.poolGroups.forEach((group, index) => {
      for (const memory of group.memories) if (!pools[index].includes(memory)) memory.destroy();
      group.memories = pools[index];
    });
    this.#ready = null;
  }

  /** The device is gone, and with it all pools. Their pages must have been freed. */
  loseDevice(): void {
    this.device = null;
    for (const group of this.poolGroups) {
      for (const memory of group.memories) memory.destroy();
      group.memories = [];
    }
    this.#ready = null;
  }

  /** Index of the pool group that a lifecycle's pages have in a tier. */
  groupIn(tier: number, lifecycle: number): number {
    return tier === 0 ? this.#groups[lifecycle].poolGroup : this.#coldGroupOf[lifecycle];
  }

  /** Tells who knows the pages of the same group, on one path, that would go along with a page, the last first. */
  onDrop(pagesBehind: (page: PageId) => Iterable<PageId>): void {
    this.#pagesBehind = pagesBehind;
  }

  /** Slots and queue of a page where it is. */
  homeOf(page: PageId): TierGroup {
    return this.#home(this.pages.tier[page], this.pages.lifecycle[page]);
  }

  bytesOf(page: PageId): number {
    return this.poolGroups[this.#groups[this.pages.lifecycle[page]].poolGroup].slotBytes;
  }

  /** Pages that left the device to make room so far, by group; for a colder tier, or for good. */
  get evictedPages(): Float64Array {
    return this.#evictedPages;
  }

  /** Lets go of prefix pins, and lets priorities fall back, whose time is over. Called before it is asked what may go. */
  expire(): void {
    const { pages } = this;
    this.#releasePins();
    if (this.#expiries.size === 0) return;
    const now = this.#now();
    for (let page = this.#expiries.take(now); page !== NONE; page = this.#expiries.take(now)) {
      pages.expiresAt[rowOf(page)] = 0;
      pages.durationMs[rowOf(page)] = 0;
      this.setPriority(page, DEFAULT_PRIORITY);
    }
  }

  free(poolGroup: number): number {
    return this.poolGroups[poolGroup].slots.free;
  }

  evictable(poolGroup: number): number {
    return this.poolGroups[poolGroup].numLeaving;
  }

  /** Slots that nobody can have now: neither free nor evictable. */
  unavailable(poolGroup: number): number {
    const { slots, numLeaving } = this.poolGroups[poolGroup];
    return slots.slots - slots.free - numLeaving;
  }

  /** Whether a slot of the device is free, or that of the page next to be evicted is, and that one has at most this priority. */
  hasRoomFor(poolGroup: number, priority: number): boolean {
    const home = this.poolGroups[poolGroup];
    if (home.slots.free > 0) return true;
    this.expire();
    const victim = home.first();
    return victim !== NONE && this.pages.priority[victim] <= priority;
  }

  /** Takes every page that nobody holds out of the tree. */
  dropAll(): void {
    const { pages } = this;
    for (const page of pages) if (pages.holds[page] === 0 && pages.block[page] !== NONE) this.#removeFromTree(page);
  }

  /** Lets a droppable page vanish to make room, and what the tree lets go with it. */
  drop(page: PageId): void {
    this.traffic?.leaving(page);
    this.#dropping = true;
    this.#removeFromTree(page);
    this.#dropping = false;
  }

  /**
   * Drops a droppable page to make room. Where pages go to a colder tier the policy was not told which of them others hang from;
   * of those that would go along, the last one in the same queue goes instead.
   */
  dropFor(page: PageId): void {
    this.drop(this.homeOf(page).passesDown ? this.#lastBehind(page) : page);
  }

  /** Takes one free slot of the device. The caller has made room. */
  takeSlot(poolGroup: number): number {
    return this.poolGroups[poolGroup].take();
  }

  /** Takes so many free slots of the device, the lowest first: a view, good until the next call. The caller has made room. */
  takeSlots(poolGroup: number, count: number): Int32Array {
    return this.poolGroups[poolGroup].takeMany(count);
  }

  releaseSlot(poolGroup: number, slot: number): void {
    this.poolGroups[poolGroup].slots.release(slot);
  }

  /** A new page of a group in a free slot of the device, held and locked once. The caller has made room. */
  createHeld(group: number, priority: number): PageId {
    return this.createHeldIn(this.takeSlot(this.#groups[group].poolGroup), group, priority);
  }

  /** The same in a slot that was taken. */
  createHeldIn(slot: number, group: number, priority: number): PageId {
    const page = this.pages.create(group, slot, priority);
    this.pages.holds[page] = 1;
    this.pages.locks[page] = 1;
    return page;
  }

  /**
   * A new page of a group in the slot of another one of the device and the same pool group, which one suspended request holds
   * and which ceases to exist.
   */
  createInPlaceOf(old: PageId, group: number, priority: number): PageId {
    if (this.pages.block[old] !== NONE) this.#removeFromTree(old);
    this.#unqueue(old);
    const slot = this.pages.slot[old];
    this.pages.destroy(old);
    const page = this.pages.create(group, slot, priority);
    this.pages.holds[page] = 1;
    this.pages.locks[page] = 1;
    return page;
  }

  /** A new page of a group in a slot of the first colder tier, taken already; pinned and not held. */
  createCold(group: number, priority: number, slot: number): PageId {
    const page = this.pages.create(group, slot, priority, 1);
    this.pages.pins[page] = 1;
    return page;
  }

  /** A new page of a group in a free slot of the device, pinned and not held yet. */
  createPinned(group: number, priority: number): PageId {
    const page = this.#create(group, priority);
    this.pages.pins[page] = 1;
    return page;
  }

  setPriority(page: PageId, priority: number): void {
    if (this.pages.priority[page] === priority) return;
    const wasQueued = this.pages.queued[page] !== QUEUED_NOT;
    this.#unqueue(page);
    this.pages.priority[page] = priority;
    if (wasQueued) this.requeue(page);
  }

  /** An active request holds a page of the device until `release`. */
  hold(page: PageId): void {
    if (this.pages.holds[page]++ === 0) this.#stopDuration(page);
    this.lock(page);
  }

  /** An active request lets go of a page: the last to do so leaves it to the queue when the tree lists it, else frees it. */
  release(page: PageId): void {
    const { holds, locks } = this.pages;
    const left = --locks[page];
    if (--holds[page] === 0) this.#afterUse(page);
    else if (left === 0) this.requeue(page);
  }

  /** A suspended request holds a page, wherever it is, until `unclaim`. */
  claim(page: PageId): void {
    if (this.pages.holds[page]++ > 0) return;
    this.#stopDuration(page);
    this.#unqueue(page);
    if (this.passesDown(this.pages.tier[page])) this.requeue(page);
  }

  /** A suspended request lets go of a page, as `release`. */
  unclaim(page: PageId): void {
    if (--this.pages.holds[page] === 0) this.#afterUse(page);
    else if (this.pages.queued[page] === QUEUED_NOT) this.requeue(page);
  }

  /** A request that holds a page of the device becomes active: the page keeps its slot until `unlock`. */
  lock(page: PageId): void {
    if (this.pages.locks[page]++ === 0) this.#unqueue(page);
  }

  unlock(page: PageId): void {
    if (--this.pages.locks[page] === 0) this.requeue(page);
  }

  /** Keeps a page where it is while a move needs it. */
  pin(page: PageId): void {
    if (this.pages.pins[page]++ === 0) this.#unqueue(page);
  }

  unpin(page: PageId): void {
    if (--this.pages.pins[page] === 0) this.#afterUse(page);
  }

  /** Called when a page that nobody holds has left the tree. */
  freed(page: PageId): void {
    if (this.#dropping) {
      this.traffic?.dropped(page);
      if (this.pages.tier[page] === 0) this.#evictedPages[this.pages.lifecycle[page]]++;
    }
    if (this.pages.pins[page] === 0) this.#free(page);
  }

  /** A page leaves its slot for one of another tier, taken already; whoever calls carries the bytes over. */
  moveTo(page: PageId, tier: number, slot: number): void {
    this.#unqueue(page);
    const from = this.pages.tier[page];
    if (from === 0 && tier > 0) this.#evictedPages[this.pages.lifecycle[page]]++;
    this.#leaveSlot(page);
    this.pages.tier[page] = tier;
    this.pages.slot[page] = slot;
    this.pages.stamp[rowOf(page)] = 0;
    this.traffic?.moved(page, from, tier);
  }

  /** Whether a page, which the caller alone holds, can give its slot of the device to a page of a colder tier. */
  canExchange(warm: PageId, cold: PageId): boolean {
    const { block, holds, locks, pins, tier } = this.pages;
    // What is listed elsewhere stands for other tokens.
    if (block[warm] !== NONE || holds[warm] !== 1 || locks[warm] !== 1) return false;
    return tier[warm] === 0 && tier[cold] > 0 && pins[warm] === 0 && pins[cold] === 0;
  }

  /**
   * Two pages of the same content swap places: the colder one is on the device at once, and costs no transfer. The other is
   * to be released at once.
   */
  exchange(warm: PageId, cold: PageId): void {
    const { pages } = this;
    this.#unqueue(cold);
    // What is still under way to the slot would be the same, but it is not awaited there any more.
    if (this.landings.has(cold)) this.landings.remove(cold);
    const { tier, slot } = { tier: pages.tier[cold], slot: pages.slot[cold] };
    pages.tier[cold] = pages.tier[warm];
    pages.slot[cold] = pages.slot[warm];
    pages.tier[warm] = tier;
    pages.slot[warm] = slot;
    pages.stamp[rowOf(cold)] = 0;
    pages.stamp[rowOf(warm)] = 0;
    this.requeue(cold);
    this.traffic?.swapped(cold, tier, 0);
  }

  /** Puts a page behind all others of its queue, takes it out, or leaves it out: as its state has it. */
  requeue(page: PageId): void {
    this.#unqueue(page);
    const queued = this.#queuedAs(page);
    if (queued === QUEUED_NOT) return;
    const home = this.homeOf(page);
    // Only where held pages wait, too, it decides who goes first.
    if (home.passesDown) this.pages.queuedAt[rowOf(page)] = this.#turn++;
    this.pages.queued[page] = queued;
    if (queued === QUEUED_HELD) home.held.push(page);
    else {
      home.droppable.push(page);
      if (this.pages.hasDurations) this.#startDuration(page);
    }
  }

  /** How a page should be queued. */
  #queuedAs(page: PageId): number {
    const { pages } = this;
    if (pages.pins[page] > 0 || pages.locks[page] > 0) return QUEUED_NOT;
    if (pages.holds[page] === 0) return pages.block[page] === NONE ? QUEUED_NOT : QUEUED_DROPPABLE;
    return !this.landings.has(page) && this.passesDown(pages.tier[page]) ? QUEUED_HELD : QUEUED_NOT;
  }

  /** Whether pages of a tier can go to a colder one. */
  passesDown(tier: number): boolean {
    return this.#passesDown[tier];
  }

  /** A request continues from a page that it holds. */
  reused(page: PageId): void {
    const { reuses, block, lifecycle } = this.pages;
    if (reuses[page] < MAX_REUSES) reuses[page]++;
    if (block[page] === NONE) return;
    for (let tier = 0; tier < this.tiers.length; tier++) this.#home(tier, lifecycle[page]).droppable.reused?.(page);
  }

  /** Whether a page of a group that a request would have continued from was there not long ago, as far as anybody remembers. */
  wanted(group: number, pathHash: number): boolean {
    const hash = contentHash(pathHash, group);
    let was = false;
    for (let tier = 0; tier < this.tiers.length; tier++)
      was = (this.#home(tier, group).droppable.wanted?.(group, hash) ?? false) || was;
    return was;
  }

  /** Called when no block hangs from the block of a listed page any more. */
  becameLeaf(page: PageId): void {
    if (this.pages.queued[page] === QUEUED_DROPPABLE) this.homeOf(page).droppable.becameLeaf?.(page);
  }

  destroy(): void {
    for (const group of this.poolGroups) for (const memory of group.memories) memory.destroy();
  }

  #create(group: number, priority: number): PageId {
    return this.pages.create(group, this.takeSlot(this.#groups[group].poolGroup), priority);
  }

  #lastBehind(page: PageId): PageId {
    const { queued, tier } = this.pages;
    for (const other of this.#pagesBehind(page))
      if (queued[other] === QUEUED_DROPPABLE && tier[other] === tier[page]) return other;
    return page;
  }

  #home(tier: number, lifecycle: number): TierGroup {
    return this.#homes[tier * this.#groups.length + lifecycle];
  }

  /** From when nobody holds a page any more, wherever it goes until somebody does. */
  #startDuration(page: PageId): void {
    const { durationMs, expiresAt } = this.pages;
    const row = rowOf(page);
    if (durationMs[row] === 0 || durationMs[row] === FOREVER || expiresAt[row] !== 0) return;
    expiresAt[row] = this.#now() + durationMs[row];
    this.#expiries.add(page, expiresAt[row]);
  }

  #stopDuration(page: PageId): void {
    if (this.pages.hasDurations) this.pages.expiresAt[rowOf(page)] = 0;
  }

  #afterUse(page: PageId): void {
    const { holds, pins, block } = this.pages;
    if (holds[page] === 0 && pins[page] === 0 && block[page] === NONE) this.#free(page);
    else this.requeue(page);
  }

  #unqueue(page: PageId): void {
    const { queued } = this.pages;
    if (queued[page] === QUEUED_NOT) return;
    const home = this.homeOf(page);
    if (queued[page] === QUEUED_HELD) home.held.remove(page);
    else home.droppable.remove(page);
    queued[page] = QUEUED_NOT;
  }

  #free(page: PageId): void {
    this.#unqueue(page);
    if (this.landings.has(page)) this.landings.remove(page);
    this.#leaveSlot(page);
    this.#stopDuration(page);
    this.pages.destroy(page);
  }

  #leaveSlot(page: PageId): void {
    const slot = this.pages.slot[page];
    const tier = this.pages.tier[page];
    if (tier > 0) this.tiers[tier].memory?.clear(this.groupIn(tier, this.pages.lifecycle[page]), slot);
    this.homeOf(page).slots.release(slot);
  }
}

/** Whether pages of a tier can go to a colder one: there is one, and what the tier holds can be read at once. */
function passesDown(plans: readonly TierPlan[], tier: number): boolean {
  return tier < plans.length - 1 && plans[tier].tier !== 'disk';
}
