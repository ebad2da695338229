/** One pool: equal cells in one memory. A page of the pool's group occupies the cell of its slot id in every pool of the group. */
export interface PoolSpec {
  /** For people: `"group 0 pool 1"`. */
  label: string;
  /** Bytes of one slot, a positive multiple of 4. */
  slotBytes: number;
  /** Slots, >= 1. */
  numSlots: number;
}

/** Memory of one pool. Owned by whoever created it, until `destroy`. */
export interface PoolMemory {
  readonly spec: PoolSpec;
  /** Settles once the memory is known to exist; rejects with a typed error when it could not be had. */
  readonly ready: Promise<void>;
  destroy(): void;
}

/**
 * One command on whole slots of one pool group.
 *
 * `pools` are the memories of that group, `count` says how many entries of the index arrays are used. The arrays are read
 * before `execute` returns; the caller may reuse them at once. Slots named as sources and as targets of one `execute` are
 * disjoint, and no slot is a target twice.
 *
 * With `targetPools`, the targets are slots of these: other memories than `pools`, one for each, with slots of the same size.
 */
export type PageCommand =
  | {
      kind: 'copy';
      pools: readonly PoolMemory[];
      targetPools?: readonly PoolMemory[];
      sources: Int32Array;
      targets: Int32Array;
      count: number;
    }
  | { kind: 'clear'; pools: readonly PoolMemory[]; slots: Int32Array; count: number };

/**
 * The port that page memory hangs on. Commands take effect in the order of the calls, and in order with everything else
 * that was submitted to the same device: a slot may be given out again as soon as the copy out of it was handed in.
 */
export interface PageDevice {
  /** Resolves when the device is gone, with everything on it. Absent where that cannot happen. */
  readonly lost?: Promise<unknown>;
  /** Creates the memory of one pool. Returns at once; `ready` of the result tells whether it exists. Throws on a spec it can never serve. */
  createPool(spec: PoolSpec): PoolMemory;
  /** Copies and clears whole slots: one submission for all commands together. When it throws, none of them takes effect. */
  execute(commands: readonly PageCommand[]): void;
  /**
   * Copies slots into `target`, slot after slot in the order of `slots`, once everything handed in before has landed. The copies
   * out of the slots are handed in, and `slots` is read, before the call returns: what the slots hold later does not count.
   * `target` holds at least `slots.length * slotBytes` bytes and belongs to the call until the promise settles.
   */
  readSlots(pool: PoolMemory, slots: Int32Array, target: Uint8Array): Promise<void>;
  /** Overwrites slots with `source`, laid out as `readSlots` does. `source` is read before the call returns. */
  writeSlots(pool: PoolMemory, slots: Int32Array, source: Uint8Array): void;
  /** Resolves when everything handed in so far has landed. */
  landed(): Promise<void>;
}
