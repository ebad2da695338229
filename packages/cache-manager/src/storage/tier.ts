import type { TierConfig } from '@bufferwise/core-policy';
import { SlotAllocator } from '@bufferwise/scratch-allocator';
import { LruQueue } from '../eviction/lru-queue.ts';
import type { PageTable } from '../page/page-table.ts';
import type { PoolMemory } from '../ports/page-device.ts';
import { InvariantError } from '../testing/invariant-error.ts';
import type { ColdMemory } from '../tiers/cold-memory.ts';

/** The slots of one pool group in one tier, and which of the pages there may leave. */
export class TierGroup {
  readonly slots: SlotAllocator;
  /** Pages that may leave the tier, the next to go first. */
  readonly queue: LruQueue;
  /** How many of them somebody holds: they may leave the tier, but not vanish. */
  numHeld = 0;
  /** Bytes of one slot over all pools. */
  readonly slotBytes: number;
  readonly #oneSlot = new Int32Array(1);

  constructor(pages: PageTable, numSlots: number, slotBytes: number) {
    this.slots = new SlotAllocator(numSlots);
    this.queue = new LruQueue(pages);
    this.slotBytes = slotBytes;
  }

  /** Pages that nobody holds: they may vanish at once. */
  get numDroppable(): number {
    return this.queue.count - this.numHeld;
  }

  get numUsed(): number {
    return this.slots.slots - this.slots.free;
  }

  /** Takes the lowest free slot. The caller has seen to it that there is one. */
  take(): number {
    if (!this.slots.allocate(1, this.#oneSlot)) throw new InvariantError(['a pool group has no free slot, though room was made']);
    return this.#oneSlot[0];
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
    numSlots: number,
    options: { poolSlotBytes: readonly number[]; grows: boolean; coldGroup: number },
  ) {
    super(
      pages,
      numSlots,
      options.poolSlotBytes.reduce((sum, bytes) => sum + bytes, 0),
    );
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
