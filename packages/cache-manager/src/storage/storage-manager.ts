import { SlotAllocator, type StorageLayout } from '@bufferwise/scratch-allocator';
import { NONE } from '../columns.ts';
import type { EvictionPolicy } from '../eviction/eviction-policy.ts';
import { contentHash } from '../eviction/eviction-view.ts';
import { Expiries } from '../eviction/expiries.ts';
import { DEFAULT_PRIORITY, LruQueue } from '../eviction/lru-queue.ts';
import { FOREVER, type PageId, PageTable } from '../page/page-table.ts';
import type { PageDevice, PoolMemory } from '../ports/page-device.ts';
import type { GroupRules } from '../request/group-rules.ts';
import { InvariantError } from '../testing/invariant-error.ts';

/** One pool group on the device: its slots, its memories, and which of its pages may go. */
export interface PoolGroup {
  readonly slots: SlotAllocator;
  readonly memories: readonly PoolMemory[];
  readonly droppable: EvictionPolicy;
  /** Bytes of one slot over all pools. */
  readonly slotBytes: number;
  /** Whether its demand grows with the sequence: some lifecycle of it is attention. */
  readonly grows: boolean;
}

/** What a column of bytes counts. */
const MAX_REUSES = 255;

/**
 * Device memory by slots, and the life of pages between being created and being freed.
 *
 * A page is held by requests, or listed by a tree block, or both. Held: nobody may take it. Only listed: it waits in the
 * queue of its pool group. Neither: it is freed at once.
 */
export class StorageManager {
  readonly pages = new PageTable();
  readonly poolGroups: readonly PoolGroup[];
  readonly device: PageDevice;
  readonly #groups: readonly GroupRules[];
  /** Where the pages of each group queue. */
  readonly #queues: readonly EvictionPolicy[];
  readonly #now: () => number;
  readonly #expiries = new Expiries((page, time) => this.pages.expiresAt[page] === time);
  readonly #oneSlot = new Int32Array(1);
  /** Takes a listed page out of the tree; set once by the manager, which owns both. */
  #removeFromTree: (page: PageId) => void = () => {};
  #releasePins: () => void = () => {};
  #ready: Promise<void> | null = null;
  readonly #evictedPages: Float64Array;
  #isEvicting = false;

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
  }

  onEvict(removeFromTree: (page: PageId) => void): void {
    this.#removeFromTree = removeFromTree;
  }

  /** Tells who releases the pins whose time is over. */
  onExpire(releasePins: () => void): void {
    this.#releasePins = releasePins;
  }

  /** Settles once all pool memory is known to exist. */
  ready(): Promise<void> {
    this.#ready ??= Promise.all(this.poolGroups.flatMap((group) => group.memories.map((memory) => memory.ready))).then(
      () => undefined,
    );
    return this.#ready;
  }

  /** Pages evicted so far, by group, those included that were lost behind another. */
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
    return this.poolGroups[poolGroup].droppable.count;
  }

  /** Slots that nobody can have now: neither free nor evictable. */
  unavailable(poolGroup: number): number {
    const { slots, droppable } = this.poolGroups[poolGroup];
    return slots.slots - slots.free - droppable.count;
  }

  /** Whether a slot is free, or held by nothing better than a droppable page of at most this priority. */
  hasRoomFor(poolGroup: number, priority: number): boolean {
    const { slots, droppable } = this.poolGroups[poolGroup];
    if (slots.free > 0) return true;
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

  /** Takes every page that nobody holds out of the tree. */
  dropAll(): void {
    for (const { droppable } of this.poolGroups) {
      while (droppable.count > 0) this.#removeFromTree(droppable.first());
    }
  }

  /** Takes one free slot. The caller has made room. */
  takeSlot(poolGroup: number): number {
    const taken = this.poolGroups[poolGroup].slots.allocate(1, this.#oneSlot);
    if (!taken) throw new InvariantError([`pool group ${poolGroup} has no free slot, though room was made`]);
    return this.#oneSlot[0];
  }

  releaseSlot(poolGroup: number, slot: number): void {
    this.poolGroups[poolGroup].slots.release(slot);
  }

  /** A new page of a group in a free slot, held once. The caller has made room. */
  createHeld(group: number, priority: number): PageId {
    const page = this.pages.create(group, this.takeSlot(this.#groups[group].poolGroup), priority);
    this.pages.holds[page] = 1;
    return page;
  }

  /** A new page of a group in the slot of another of the same pool group, which one request holds and which ceases to exist. */
  createInPlaceOf(old: PageId, group: number, priority: number): PageId {
    if (this.pages.block[old] !== NONE) this.#removeFromTree(old);
    const slot = this.pages.slot[old];
    this.pages.destroy(old);
    const page = this.pages.create(group, slot, priority);
    this.pages.holds[page] = 1;
    return page;
  }

  /** Keeps a page from being taken until `release`. */
  hold(page: PageId): void {
    if (this.pages.holds[page]++ > 0) return;
    this.#queueOf(page).remove(page);
    this.pages.expiresAt[page] = 0;
  }

  /** Lets go of a page: the last to do so leaves it to the queue when the tree lists it, else frees it. */
  release(page: PageId): void {
    const { holds, block } = this.pages;
    if (--holds[page] > 0) return;
    if (block[page] === NONE) this.#free(page);
    else this.#enqueue(page);
  }

  /** Called when a page that nobody holds has left the tree. */
  freed(page: PageId): void {
    if (this.#isEvicting) this.#evictedPages[this.pages.lifecycle[page]]++;
    this.#queueOf(page).remove(page);
    this.#free(page);
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
    this.pages.destroy(page);
  }
}
