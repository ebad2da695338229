/** What is in a slot, as in the manager's `SlotState`; the number is the index. */
export const SLOT_STATES = ['free', 'locked', 'held', 'droppable', 'scratch'] as const;

/** No page, block, group or conversation. */
export const NOTHING = -1;

/** A run of slots of equal size: the pools of one pool group in one tier. */
export interface PoolAbout {
  readonly tier: number;
  readonly medium: 'device' | 'host' | 'disk';
  /** Ids of the groups whose pages lie here. */
  readonly groupIds: readonly number[];
  /** Bytes of a slot over all pools. */
  readonly slotBytes: number;
  /** Its first entry in the columns. */
  readonly firstSlot: number;
  readonly numSlots: number;
  readonly numFree: number;
  /** The most slots that requests had in use at a time, also within steps; null where nobody counts. */
  readonly mostInUse: number | null;
}

/**
 * Every slot of every pool at one moment: columns with an entry for each slot, pool behind pool. They are views into one buffer, which goes
 * from the worker to the page without being copied.
 */
export interface MemoryFrame {
  /** Counts frames. */
  readonly sequence: number;
  readonly pools: readonly PoolAbout[];
  readonly numSlots: number;
  /** Index into `SLOT_STATES`. */
  readonly state: Uint8Array;
  readonly page: Int32Array;
  readonly block: Int32Array;
  readonly group: Int8Array;
  /** Tokens for which the page is good. */
  readonly coverage: Uint16Array;
  /** How often it is held. */
  readonly holds: Uint16Array;
  readonly priority: Uint8Array;
  /** Conversation of the first owner. */
  readonly owner: Int16Array;
  /** Conversations that hold it, as bits: number modulo 32. */
  readonly owners: Uint32Array;
  /** Pages that were left out for their number. */
  readonly omitted: number;
}

/** Columns for so many slots, in one buffer. */
export function emptyColumns(numSlots: number) {
  // The widest entries first, so that each column begins where its entries may.
  const buffer = new ArrayBuffer(numSlots * 21);
  let at = 0;
  const take = <T>(column: new (buffer: ArrayBuffer, offset: number, length: number) => T, bytes: number): T => {
    const made = new column(buffer, at, numSlots);
    at += bytes * numSlots;
    return made;
  };
  return {
    buffer,
    page: take(Int32Array, 4).fill(NOTHING),
    block: take(Int32Array, 4).fill(NOTHING),
    owners: take(Uint32Array, 4),
    coverage: take(Uint16Array, 2),
    holds: take(Uint16Array, 2),
    owner: take(Int16Array, 2).fill(NOTHING),
    state: take(Uint8Array, 1),
    group: take(Int8Array, 1).fill(NOTHING),
    priority: take(Uint8Array, 1),
  };
}
