import type { TierConfig } from '@bufferwise/core-policy';
import { SlotAllocator } from '@bufferwise/scratch-allocator';
import { grownLength, NONE } from '../columns.ts';
import type { EvictionPolicy } from '../eviction/eviction-policy.ts';
import { GuardedPolicy } from '../eviction/guarded-policy.ts';
import { LruQueue } from '../eviction/lru-queue.ts';
import { type PageId, type PageTable, rowOf } from '../page/page-table.ts';
import type { PoolMemory } from '../ports/page-device.ts';
import { InvariantError } from '../testing/invariant-error.ts';
import type { ColdMemory } from '../tiers/cold-memory.ts';

const NO_ROOM = 'a pool group has no free slot, though room was made';

/** Where the pages of one pool group of a tier are, as far as their eviction goes. */
export interface QueueHome {
  /** Slots of the pool group. Changes when the tier is resized. */
  readonly numSlots: number;
  /** Whether what has to leave can go to a colder tier. */
  readonly passesDown: boolean;
}

/** Makes the eviction queue of one pool group of one tier. */
export type QueueFactory = (pages: PageTable, home: QueueHome) => EvictionPolicy;

export interface TierGroupOptions extends QueueHome {
  /** Bytes of one slot over all pools. */
  slotBytes: number;
  createQueue: QueueFactory;
}

/** The slots of one pool group in one tier, and which of the pages there may leave. */
export class TierGroup implements QueueHome {
  readonly slots: SlotAllocator;
  /** Pages that nobody holds: they may go to a colder tier, or vanish. */
  readonly droppable: EvictionPolicy;
  /** Pages that suspended requests hold: they may go to a colder tier, but not vanish. */
  readonly held: LruQueue;
  readonly passesDown: boolean;
  readonly slotBytes: number;
  readonly #pages: PageTable;
  readonly #oneSlot = new Int32Array(1);
  #manySlots = new Int32Array(16);

  constructor(pages: PageTable, options: TierGroupOptions) {
    this.#pages = pages;
    this.slots = new SlotAllocator(options.numSlots);
    this.passesDown = options.passesDown;
    this.slotBytes = options.slotBytes;
    this.droppable = options.createQueue(pages, this);
    this.held = new LruQueue(pages);
  }

  get numSlots(): number {
    return this.slots.slots;
  }

  /** Pages that may leave the tier. */
  get numLeaving(): number {
    return this.droppable.count + this.held.count;
  }

  /** Pages that nobody holds: they may vanish at once. */
  get numDroppable(): number {
    return this.droppable.count;
  }

  /** The page to leave next, NONE when none may. */
  first(): PageId {
    const droppable = this.droppable.first();
    const held = this.held.first();
    if (droppable === NONE) return held;
    return held === NONE || this.#leavesBefore(droppable, held) ? droppable : held;
  }

  /** @throws {InvariantError} when a policy of the caller is not what it should be. Asked before anything changes. */
  checkPolicy(): void {
    if (this.droppable instanceof GuardedPolicy) this.droppable.check();
  }

  /** The pages that may leave the tier, the next to go first. For checks and tools, not for hot paths. */
  *leaving(): Generator<PageId> {
    const held = this.held[Symbol.iterator]();
    let next = held.next();
    for (const page of this.droppable) {
      for (; !next.done && !this.#leavesBefore(page, next.value); next = held.next()) yield next.value;
      yield page;
    }
    for (; !next.done; next = held.next()) yield next.value;
  }

  get numUsed(): number {
    return this.slots.slots - this.slots.free;
  }

  /** Takes the lowest free slot. The caller has seen to it that there is one. */
  take(): number {
    if (!this.slots.allocate(1, this.#oneSlot)) throw new InvariantError([NO_ROOM]);
    return this.#oneSlot[0];
  }

  /** Takes so many free slots, the lowest first: a view, good until the next call. The caller has seen to it that there are as many. */
  takeMany(count: number): Int32Array {
    if (count > this.#manySlots.length) this.#manySlots = new Int32Array(grownLength(this.#manySlots.length, count));
    if (!this.slots.allocate(count, this.#manySlots)) throw new InvariantError([NO_ROOM]);
    return this.#manySlots;
  }

  #leavesBefore(droppable: PageId, held: PageId): boolean {
    const { priority, queuedAt } = this.#pages;
    if (priority[droppable] !== priority[held]) return priority[droppable] < priority[held];
    return queuedAt[rowOf(droppable)] < queuedAt[rowOf(held)];
  }
}

/** A pool group on the device. */
export class DeviceGroup extends TierGroup {
  /** Changes with the tier's quota, and with the device. */
  memories: readonly PoolMemory[] = [];
  /** Bytes of a slot in each pool. */
  readonly poolSlotBytes: readonly number[];
  /** Whether its demand grows with the sequence: some lifecycle of it is attention. */
  readonly grows: boolean;
  /** The pool group that its pages have in every colder tier. */
  readonly coldGroup: number;

  constructor(
    pages: PageTable,
    options: Omit<TierGroupOptions, 'slotBytes'> & { poolSlotBytes: readonly number[]; grows: boolean; coldGroup: number },
  ) {
    super(pages, { ...options, slotBytes: options.poolSlotBytes.reduce((sum, bytes) => sum + bytes, 0) });
    this.poolSlotBytes = options.poolSlotBytes;
    this.grows = options.grows;
    this.coldGroup = options.coldGroup;
  }
}

/** One tier: the device first, then colder ones. */
export interface Tier {
  readonly kind: TierConfig['tier'];
  readonly groups: readonly TierGroup[];
  /** Null on the device, whose memory is in the pools of its groups. */
  readonly memory: ColdMemory | null;
}
