import { NONE } from '../columns.ts';
import { type PageId, QUEUED_NOT } from '../page/page-table.ts';
import type { StorageManager } from '../storage/storage-manager.ts';
import type { TierGroup } from '../storage/tier.ts';
import type { Landing } from './landings.ts';

/** A page that has its slot in a colder tier, and the slot of the device that its bytes are read from. */
interface Reading {
  page: PageId;
  deviceSlot: number;
}

/** Told of pages whose bytes are lost, after they have left the queues. */
export type LosePages = (pages: readonly PageId[]) => void;

/**
 * Carries pages down, a tier at a time. A slot that a page leaves is free at once: copies out of the device are handed in
 * before anything that is done with the slot later, and what leaves the host is copied first. The bytes that are under way
 * count against the staging budget until they land.
 */
export class Offload {
  readonly #storage: StorageManager;
  readonly #lose: LosePages;
  readonly #ended: () => void;
  /** Reads not handed in yet, by pool group of the device. */
  readonly #readings: Reading[][];

  /** @param ended called when pages that were on their way have landed, came back, or are lost */
  constructor(storage: StorageManager, lose: LosePages, ended: () => void) {
    this.#storage = storage;
    this.#lose = lose;
    this.#ended = ended;
    this.#readings = storage.poolGroups.map(() => []);
  }

  /** A page sets out for a slot of a colder tier, which is its own already. Then `flush`. */
  send(page: PageId, target: number, slot: number): void {
    const storage = this.#storage;
    const { pages } = storage;
    const tier = pages.tier[page];
    if (tier === 0) {
      const deviceSlot = pages.slot[page];
      storage.moveTo(page, target, slot);
      this.readInto(page, deviceSlot);
      return;
    }
    const memory = storage.tiers[tier].memory;
    const bytes = memory?.view(storage.groupIn(tier, pages.lifecycle[page]), pages.slot[page])?.slice() as Uint8Array;
    storage.moveTo(page, target, slot);
    storage.staging.take(bytes.length);
    void this.#sink(page, tier, bytes);
  }

  /** A page that has a slot in a colder tier gets the bytes of a slot of the device. Then `flush`. */
  readInto(page: PageId, deviceSlot: number): void {
    const storage = this.#storage;
    storage.staging.take(storage.bytesOf(page));
    this.#readings[storage.groupIn(0, storage.pages.lifecycle[page])].push({ page, deviceSlot });
  }

  /** Hands in the reads of all pages that set out from the device; before anything else is done with their slots. */
  flush(): void {
    this.#readings.forEach((readings, group) => {
      if (readings.length === 0) return;
      this.#readings[group] = [];
      // Making room for the next page may have taken one of these out of the tree, and so out of the world.
      const wanted = readings.filter(({ page }) => this.#storage.pages.isLive(page));
      this.#storage.staging.giveBack((readings.length - wanted.length) * this.#storage.poolGroups[group].slotBytes);
      if (wanted.length > 0) void this.#read(group, wanted);
    });
  }

  async #read(group: number, readings: readonly Reading[]): Promise<void> {
    const storage = this.#storage;
    const { memories, poolSlotBytes, slotBytes } = storage.poolGroups[group];
    const landing = storage.landings.begin(readings.map(({ page }) => page));
    for (const { page } of readings) storage.requeue(page);
    const slots = Int32Array.from(readings, ({ deviceSlot }) => deviceSlot);
    const staged = poolSlotBytes.map((bytes) => new Uint8Array(bytes * slots.length));
    // Every read is handed in before the first is waited for.
    const reads = memories.map(async (memory, pool) => storage.device?.readSlots(memory, slots, staged[pool]));
    const arrived = (await Promise.allSettled(reads)).every(({ status }) => status === 'fulfilled');
    const lost: PageId[] = [];
    const writes: Promise<void>[] = [];
    readings.forEach(({ page }, index) => {
      if (!storage.landings.isAwaited(page, landing)) return;
      if (!arrived) {
        lost.push(page);
        return;
      }
      const tier = storage.pages.tier[page];
      const stored = storage.tiers[tier].memory?.write(
        storage.groupIn(tier, storage.pages.lifecycle[page]),
        storage.pages.slot[page],
        joined(staged, poolSlotBytes, index),
      );
      const landed = () => {
        if (storage.landings.isAwaited(page, landing)) this.#landed(page);
      };
      const failed = () => {
        if (storage.landings.isAwaited(page, landing)) lost.push(page);
      };
      if (stored) writes.push(stored.then(landed, failed));
      else landed();
    });
    await Promise.all(writes);
    storage.staging.giveBack(slotBytes * slots.length);
    this.#end(landing, lost);
  }

  /** Writes a page that came from a tier of this process's memory. When that fails, it goes back there if there is room. */
  async #sink(page: PageId, from: number, bytes: Uint8Array): Promise<void> {
    const storage = this.#storage;
    const { pages, landings } = storage;
    const landing = landings.begin([page]);
    storage.requeue(page);
    const tier = pages.tier[page];
    const lost: PageId[] = [];
    try {
      await storage.tiers[tier].memory?.write(storage.groupIn(tier, pages.lifecycle[page]), pages.slot[page], bytes);
      if (landings.isAwaited(page, landing)) this.#landed(page);
    } catch {
      if (landings.isAwaited(page, landing) && !this.#putBack(page, from, bytes)) lost.push(page);
    }
    storage.staging.giveBack(bytes.length);
    this.#end(landing, lost);
  }

  /** A held page may leave from now on; a droppable one is in the queue since it set out, and keeps its place. */
  #landed(page: PageId): void {
    const storage = this.#storage;
    storage.landings.remove(page);
    if (storage.pages.queued[page] === QUEUED_NOT) storage.requeue(page);
  }

  #putBack(page: PageId, tier: number, bytes: Uint8Array): boolean {
    const storage = this.#storage;
    const { memory, groups } = storage.tiers[tier];
    const group = storage.groupIn(tier, storage.pages.lifecycle[page]);
    if (groups[group].slots.free === 0 && storage.pages.holds[page] > 0) this.#dropOne(groups[group]);
    if (groups[group].slots.free === 0 || !memory?.reserve(group, groups[group].numUsed + 1)) return false;
    storage.moveTo(page, tier, groups[group].take());
    memory.write(group, storage.pages.slot[page], bytes);
    this.#landed(page);
    return true;
  }

  /** What somebody needs comes before what nobody holds. */
  #dropOne({ droppable }: TierGroup): void {
    const page = droppable.first();
    if (page !== NONE) this.#storage.dropFor(page);
  }

  #end(landing: Landing, lost: readonly PageId[]): void {
    const { landings } = this.#storage;
    // Since it failed, a page may have ended, or turned up elsewhere.
    const stillLost = lost.filter((page) => landings.isAwaited(page, landing));
    for (const page of stillLost) landings.remove(page);
    if (stillLost.length > 0) this.#lose(stillLost);
    landings.end(landing);
    this.#ended();
  }
}

/** One page in one piece: its part of every pool, one after the other. */
function joined(staged: readonly Uint8Array[], poolSlotBytes: readonly number[], index: number): Uint8Array {
  const parts = staged.map((bytes, pool) => bytes.subarray(index * poolSlotBytes[pool], (index + 1) * poolSlotBytes[pool]));
  if (parts.length === 1) return parts[0];
  const page = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    page.set(part, at);
    at += part.length;
  }
  return page;
}
