import type { StorageLayout, TierPlan } from '@bufferwise/scratch-allocator';
import { NONE } from '../columns.ts';
<<<<<<< HEAD
import { type PageId, PageTable, QUEUED_DROPPABLE, QUEUED_HELD, QUEUED_NOT } from '../page/page-table.ts';
=======
import type { EvictionPolicy } from '../eviction/eviction-policy.ts';
import { contentHash } from '../eviction/eviction-view.ts';
import { Expiries } from '../eviction/expiries.ts';
import { DEFAULT_PRIORITY, LruQueue } from '../eviction/lru-queue.ts';
import { FOREVER, type PageId, PageTable } from '../page/page-table.ts';
>>>>>>> f9d6c33 (Weigh what pages save when some must go; keep runs of tokens for a time, pin prefixes; replay traces)
import type { PageDevice, PoolMemory } from '../ports/page-device.ts';
import type { GroupRules } from '../request/group-rules.ts';
import type { Boarding } from '../tiers/boarding.ts';
import type { ColdMemory } from '../tiers/cold-memory.ts';
import { Landings } from '../tiers/landings.ts';
import { StagingBudget } from '../tiers/staging-budget.ts';
import { DeviceGroup, type Tier, TierGroup } from './tier.ts';

<<<<<<< HEAD
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
}

/** Told of what happens to pages on their way between tiers, once it is certain. */
export interface PageTraffic {
  /** A page is in another tier from now on. Its block, if any, lists it as before. */
  moved(page: PageId, from: number, to: number): void;
  /** A copy of a page has come into another tier. */
  copied(page: PageId, to: number): void;
  /** A page is about to be dropped to make room. */
  dropped(page: PageId): void;
=======
/** One pool group on the device: its slots, its memories, and which of its pages may go. */
export interface PoolGroup {
  readonly slots: SlotAllocator;
  readonly memories: readonly PoolMemory[];
  readonly droppable: EvictionPolicy;
  /** Bytes of one slot over all pools. */
  readonly slotBytes: number;
  /** Whether its demand grows with the sequence: some lifecycle of it is attention. */
  readonly grows: boolean;
>>>>>>> f9d6c33 (Weigh what pages save when some must go; keep runs of tokens for a time, pin prefixes; replay traces)
}

/** What a column of bytes counts. */
const MAX_REUSES = 255;

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
  readonly landings = new Landings(this.pages);
  /** Moves to a warmer tier that are under way. */
  readonly boardings = new Set<Boarding>();
  readonly staging: StagingBudget;
  /** Told of moves and drops; set once by the manager. */
  traffic: PageTraffic | null = null;
  /** Null from when the device is lost until there is another. */
  device: PageDevice | null;
  readonly #groups: readonly GroupRules[];
<<<<<<< HEAD
  readonly #coldGroupOf: Int32Array;
=======
  /** Where the pages of each group queue. */
  readonly #queues: readonly EvictionPolicy[];
  readonly #now: () => number;
  readonly #expiries = new Expiries((page, time) => this.pages.expiresAt[page] === time);
  readonly #oneSlot = new Int32Array(1);
>>>>>>> f9d6c33 (Weigh what pages save when some must go; keep runs of tokens for a time, pin prefixes; replay traces)
  /** Takes a listed page out of the tree; set once by the manager, which owns both. */
  #removeFromTree: (page: PageId) => void = () => {};
  #releasePins: () => void = () => {};
  #ready: Promise<void> | null = null;
  readonly #evictedPages: Float64Array;
  #dropping = false;

<<<<<<< HEAD
  constructor(options: StorageOptions) {
    const { layout, groups, plans, memories } = options;
    this.device = options.device;
    this.#groups = groups;
    this.#evictedPages = new Float64Array(groups.length);
    this.#coldGroupOf = Int32Array.from(groups, ({ id }) => layout.coldPoolGroupOf(id));
    this.poolGroups = layout.poolGroups.map(({ pools, lifecycleIds }, index) => {
      return new DeviceGroup(this.pages, plans[0].slots[index], {
        poolSlotBytes: pools.map(({ slotBytes }) => slotBytes),
        grows: lifecycleIds.some((id) => groups[id].kind === 'attention'),
        coldGroup: this.#coldGroupOf[lifecycleIds[0]],
      });
    });
    this.tiers = plans.map(({ tier, slots }, index): Tier => {
      if (index === 0) return { kind: tier, groups: this.poolGroups, memory: null };
      const coldGroups = layout.coldPoolGroups.map(({ slotBytes }, group) => new TierGroup(this.pages, slots[group], slotBytes));
      return { kind: tier, groups: coldGroups, memory: memories[index] };
    });
    const largestPage = Math.max(0, ...this.poolGroups.map(({ slotBytes }) => slotBytes));
    // Less, and a page could never leave its tier.
    this.staging = new StagingBudget(Math.max(options.stagingBytes, largestPage * plans.length));
    const pools = this.createPools(options.device, plans[0].slots);
    this.poolGroups.forEach((group, index) => {
      group.memories = pools[index];
    });
=======
  constructor(options: {
    layout: StorageLayout;
    groups: readonly GroupRules[];
    numSlots: readonly number[];
    device: PageDevice;
    /** The eviction queue of a pool group of so many slots. Default: least recently used first. */
    createQueue?: (pages: PageTable, slots: number) => EvictionPolicy;
    /** Milliseconds that never fall. */
    now?: () => number;
  }) {
    this.device = options.device;
    this.#now = options.now ?? Date.now;
    this.#groups = options.groups;
    this.#evictedPages = new Float64Array(options.groups.length);
    const created: PoolMemory[] = [];
    try {
      this.poolGroups = options.layout.poolGroups.map((desc, index) => {
        const memories = desc.pools.map((pool, poolIndex) => {
          const spec = {
            label: `pool group ${index} pool ${poolIndex}`,
            slotBytes: pool.slotBytes,
            numSlots: options.numSlots[index],
          };
          const memory = this.device.createPool(spec);
          created.push(memory);
          // Whoever waits for `ready()` hears of it; without anybody waiting it must not end the process.
          memory.ready.catch(() => {});
          return memory;
        });
        return {
          slots: new SlotAllocator(options.numSlots[index]),
          memories,
          droppable: options.createQueue?.(this.pages, options.numSlots[index]) ?? new LruQueue(this.pages),
          slotBytes: desc.slotBytes,
          grows: desc.lifecycleIds.some((id) => options.groups[id].kind === 'attention'),
        };
      });
    } catch (error) {
      for (const memory of created) memory.destroy();
      throw error;
    }
    this.#queues = options.groups.map(({ poolGroup }) => this.poolGroups[poolGroup].droppable);
>>>>>>> f9d6c33 (Weigh what pages save when some must go; keep runs of tokens for a time, pin prefixes; replay traces)
  }

  onEvict(removeFromTree: (page: PageId) => void): void {
    this.#removeFromTree = removeFromTree;
  }

<<<<<<< HEAD
  get lastTier(): number {
    return this.tiers.length - 1;
  }

  /** Memory for so many slots of each pool group. Throws what the device throws; nothing is left of it then. */
  createPools(device: PageDevice, numSlots: readonly number[]): PoolMemory[][] {
    const created: PoolMemory[] = [];
    try {
      return this.poolGroups.map(({ poolSlotBytes }, group) =>
        poolSlotBytes.map((slotBytes, pool) => {
          const memory = device.createPool({ label: `pool group ${group} pool ${pool}`, slotBytes, numSlots: numSlots[group] });
          created.push(memory);
          // Whoever waits for `ready()` hears of it; without anybody waiting it must not end the process.
          memory.ready.catch(() => {});
          return memory;
        }),
      );
    } catch (error) {
      for (const memory of created) memory.destroy();
      throw error;
    }
=======
  /** Tells who releases the pins whose time is over. */
  onExpire(releasePins: () => void): void {
    this.#releasePins = releasePins;
>>>>>>> f9d6c33 (Weigh what pages save when some must go; keep runs of tokens for a time, pin prefixes; replay traces)
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

  /** Slots and queue of a page where it is. */
  homeOf(page: PageId): TierGroup {
    const tier = this.pages.tier[page];
    return this.tiers[tier].groups[this.groupIn(tier, this.pages.lifecycle[page])];
  }

  bytesOf(page: PageId): number {
    return this.poolGroups[this.#groups[this.pages.lifecycle[page]].poolGroup].slotBytes;
  }

  /** Pages that left the device to make room so far, by group; for a colder tier, or for good. */
  get evictedPages(): Float64Array {
    return this.#evictedPages;
  }

  /** Lets go of pins, and lets priorities fall back, whose time is over. Called before it is asked what may go. */
  expire(): void {
    const { pages } = this;
    this.#releasePins();
    if (this.#expiries.size === 0) return;
    const now = this.#now();
    for (let page = this.#expiries.take(now); page !== NONE; page = this.#expiries.take(now)) {
      const queue = this.#queueOf(page);
      queue.remove(page);
      pages.expiresAt[page] = 0;
      pages.durationMs[page] = 0;
      pages.priority[page] = DEFAULT_PRIORITY;
      queue.push(page);
    }
  }

  free(poolGroup: number): number {
    return this.poolGroups[poolGroup].slots.free;
  }

  evictable(poolGroup: number): number {
    return this.poolGroups[poolGroup].queue.count;
  }

  /** Slots that nobody can have now: neither free nor evictable. */
  unavailable(poolGroup: number): number {
    const { slots, queue } = this.poolGroups[poolGroup];
    return slots.slots - slots.free - queue.count;
  }

  /** Whether a slot of the device is free, or that of the page next to be evicted is, and that one has at most this priority. */
  hasRoomFor(poolGroup: number, priority: number): boolean {
    const { slots, queue } = this.poolGroups[poolGroup];
    if (slots.free > 0) return true;
<<<<<<< HEAD
    const victim = queue.first();
    return victim !== NONE && this.pages.priority[victim] <= priority;
  }

=======
    this.expire();
    const victim = droppable.first();
    return victim !== NONE && this.pages.priority[victim] <= priority;
  }

  /** Evicts until `count` slots of the pool group are free. The caller has made sure that free and evictable suffice. */
  makeRoom(poolGroup: number, count: number): void {
    const { slots, droppable } = this.poolGroups[poolGroup];
    this.#isEvicting = true;
    while (slots.free < count) {
      const victim = droppable.first();
      if (victim === NONE) throw new InvariantError([`pool group ${poolGroup} has room, but its eviction policy names no page`]);
      this.#removeFromTree(victim);
    }
    this.#isEvicting = false;
  }

>>>>>>> f9d6c33 (Weigh what pages save when some must go; keep runs of tokens for a time, pin prefixes; replay traces)
  /** Takes every page that nobody holds out of the tree. */
  dropAll(): void {
    const { pages } = this;
    for (let page = 0; page < pages.size; page++) {
      if (pages.isLive(page) && pages.holds[page] === 0 && pages.block[page] !== NONE) this.#removeFromTree(page);
    }
  }

  /** Lets a droppable page vanish to make room, and what the tree lets go with it. */
  drop(page: PageId): void {
    this.#dropping = true;
    this.#removeFromTree(page);
    this.#dropping = false;
  }

  /** Takes one free slot of the device. The caller has made room. */
  takeSlot(poolGroup: number): number {
    return this.poolGroups[poolGroup].take();
  }

  releaseSlot(poolGroup: number, slot: number): void {
    this.poolGroups[poolGroup].slots.release(slot);
  }

  /** A new page of a group in a free slot of the device, held and locked once. The caller has made room. */
  createHeld(group: number, priority: number): PageId {
    const page = this.#create(group, priority);
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

<<<<<<< HEAD
  /** A new page of a group in a slot of the first colder tier, taken already; pinned and not held. */
  createCold(group: number, priority: number, slot: number): PageId {
    const page = this.pages.create(group, slot, priority, 1);
    this.pages.pins[page] = 1;
    return page;
=======
  /** Keeps a page from being taken until `release`. */
  hold(page: PageId): void {
    if (this.pages.holds[page]++ > 0) return;
    this.#queueOf(page).remove(page);
    this.pages.expiresAt[page] = 0;
>>>>>>> f9d6c33 (Weigh what pages save when some must go; keep runs of tokens for a time, pin prefixes; replay traces)
  }

  /** A new page of a group in a free slot of the device, pinned and not held yet. */
  createPinned(group: number, priority: number): PageId {
    const page = this.#create(group, priority);
    this.pages.pins[page] = 1;
    return page;
  }

  setPriority(page: PageId, priority: number): void {
    const wasQueued = this.pages.queued[page] !== QUEUED_NOT;
    this.#unqueue(page);
    this.pages.priority[page] = priority;
    if (wasQueued) this.requeue(page);
  }

  /** An active request holds a page of the device until `release`. */
  hold(page: PageId): void {
    this.pages.holds[page]++;
    this.lock(page);
  }

  /** An active request lets go of a page: the last to do so leaves it to the queue when the tree lists it, else frees it. */
  release(page: PageId): void {
<<<<<<< HEAD
    this.pages.locks[page]--;
    this.unclaim(page);
  }

  /** A suspended request holds a page, wherever it is, until `unclaim`. */
  claim(page: PageId): void {
    if (this.pages.holds[page]++ === 0) this.requeue(page);
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
=======
    const { holds, block } = this.pages;
    if (--holds[page] > 0) return;
    if (block[page] === NONE) this.#free(page);
    else this.#enqueue(page);
>>>>>>> f9d6c33 (Weigh what pages save when some must go; keep runs of tokens for a time, pin prefixes; replay traces)
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
    this.traffic?.moved(page, from, tier);
  }

  /** Whether a page, which the caller alone holds, can give its slot of the device to a page of a colder tier. */
  canExchange(warm: PageId, cold: PageId): boolean {
    const { holds, locks, pins, tier } = this.pages;
    return tier[warm] === 0 && tier[cold] > 0 && holds[warm] === 1 && locks[warm] === 1 && pins[warm] === 0 && pins[cold] === 0;
  }

  /**
   * Two pages of the same content swap places: the colder one is on the device at once, and costs no transfer. The other is
   * to be released at once.
   */
  exchange(warm: PageId, cold: PageId): void {
    const { pages } = this;
    this.#unqueue(cold);
    // What is still under way to the slot would be the same, but it is not awaited there any more.
    if (pages.landing[cold] === 1) this.landings.remove(cold);
    const { tier, slot } = { tier: pages.tier[cold], slot: pages.slot[cold] };
    pages.tier[cold] = pages.tier[warm];
    pages.slot[cold] = pages.slot[warm];
    pages.tier[warm] = tier;
    pages.slot[warm] = slot;
    this.requeue(cold);
    this.traffic?.moved(cold, tier, 0);
  }

  /** Puts a page behind all others of its queue, takes it out, or leaves it out: as its state has it. */
  requeue(page: PageId): void {
    this.#unqueue(page);
    const queued = this.#queuedAs(page);
    if (queued === QUEUED_NOT) return;
    const home = this.homeOf(page);
    home.queue.push(page);
    if (queued === QUEUED_HELD) home.numHeld++;
    this.pages.queued[page] = queued;
  }

  /** How a page should be queued. */
  #queuedAs(page: PageId): number {
    const { pages } = this;
    if (pages.pins[page] > 0 || pages.locks[page] > 0) return QUEUED_NOT;
    if (pages.holds[page] === 0) return pages.block[page] === NONE ? QUEUED_NOT : QUEUED_DROPPABLE;
    return pages.landing[page] === 0 && this.passesDown(pages.tier[page]) ? QUEUED_HELD : QUEUED_NOT;
  }

  /** Whether pages of a tier can go to a colder one: there is one, and what the tier holds can be read at once. */
  passesDown(tier: number): boolean {
    return tier < this.lastTier && this.tiers[tier].kind !== 'disk';
  }

  /** A request continues from a page that it holds. */
  reused(page: PageId): void {
    const { reuses, block } = this.pages;
    if (reuses[page] < MAX_REUSES) reuses[page]++;
    if (block[page] !== NONE) this.#queueOf(page).reused?.(page);
  }

  /** Whether a page of a group that a request would have continued from was there not long ago, as far as anybody remembers. */
  wanted(group: number, pathHash: number): boolean {
    return this.#queues[group].wanted?.(group, contentHash(pathHash, group)) ?? false;
  }

  /** Called when no block hangs from the block of a listed page any more. */
  becameLeaf(page: PageId): void {
    if (this.pages.holds[page] === 0) this.#queueOf(page).becameLeaf?.(page);
  }

  destroy(): void {
    for (const group of this.poolGroups) for (const memory of group.memories) memory.destroy();
  }

<<<<<<< HEAD
  #create(group: number, priority: number): PageId {
    return this.pages.create(group, this.takeSlot(this.#groups[group].poolGroup), priority);
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
    home.queue.remove(page);
    if (queued[page] === QUEUED_HELD) home.numHeld--;
    queued[page] = QUEUED_NOT;
  }

  #free(page: PageId): void {
    this.#unqueue(page);
    this.landings.remove(page);
    this.#leaveSlot(page);
=======
  #queueOf(page: PageId): EvictionPolicy {
    return this.#queues[this.pages.lifecycle[page]];
  }

  #enqueue(page: PageId): void {
    const { durationMs, expiresAt } = this.pages;
    this.#queueOf(page).push(page);
    if (durationMs[page] === 0 || durationMs[page] === FOREVER) return;
    expiresAt[page] = this.#now() + durationMs[page];
    this.#expiries.add(page, expiresAt[page]);
  }

  #free(page: PageId): void {
    this.pages.expiresAt[page] = 0;
    this.releaseSlot(this.#groups[this.pages.lifecycle[page]].poolGroup, this.pages.slot[page]);
>>>>>>> f9d6c33 (Weigh what pages save when some must go; keep runs of tokens for a time, pin prefixes; replay traces)
    this.pages.destroy(page);
  }

  #leaveSlot(page: PageId): void {
    const tier = this.pages.tier[page];
    const group = this.groupIn(tier, this.pages.lifecycle[page]);
    const slot = this.pages.slot[page];
    this.tiers[tier].memory?.clear(group, slot);
    this.tiers[tier].groups[group].slots.release(slot);
  }
}
