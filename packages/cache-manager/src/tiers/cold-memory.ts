/**
 * Where the pages of one colder tier lie, each in one piece. Slots are counted elsewhere; this knows bytes only. `group` is a
 * pool group of the colder tiers.
 */
export interface ColdMemory {
  /** Whether the slots below `numSlots` can be written; makes sure that they can, if there is memory for it. */
  reserve(group: number, numSlots: number): boolean;
  /**
   * Stores a page, in place of what the slot held. Null when it is there at once; else `bytes` belong to the call until the
   * promise settles, and it rejects when they could not be stored.
   */
  write(group: number, slot: number, bytes: Uint8Array): Promise<void> | null;
  /** The page in a slot, to be read before anything else is done with the slot; null when it has to be waited for. */
  view(group: number, slot: number): Uint8Array | null;
  /** The page in a slot, or null when it did not come back as it was stored. */
  read(group: number, slot: number): Promise<Uint8Array | null>;
  /** Forgets the page in a slot. */
  clear(group: number, slot: number): void;
  /** Carries the page in a slot over to another one, which holds none. */
  move(group: number, from: number, to: number): void;
  /** There are `numSlots` slots from now on, and those beyond hold nothing: their memory may go. */
  trim(group: number, numSlots: number): void;
  /** Resolves when nothing is under way. */
  settled(): Promise<void>;
  /** Gives all memory back. */
  close(): Promise<void>;
}
