import { NONE } from '../columns.ts';
import type { PageId } from '../page/page-table.ts';
import type { StorageManager } from '../storage/storage-manager.ts';

/**
 * Pages on their way to a warmer tier, with their slots there taken in advance: what has begun needs no more room, so it ends.
 *
 * All pages concerned are pinned meanwhile. Those that move keep their old slot until `land`, so that a `cancel` at any time
 * leaves everything where it was.
 */
export class Boarding {
  readonly #storage: StorageManager;
  readonly #tier: number;
  readonly #pinned: PageId[] = [];
  readonly #moves: { page: PageId; slot: number }[] = [];
  readonly #fills: { source: PageId; page: PageId }[] = [];
  readonly #slots: { group: number; slot: number }[] = [];
  #over = false;

  constructor(storage: StorageManager, tier: number) {
    this.#storage = storage;
    this.#tier = tier;
    storage.boardings.add(this);
  }

  /** Whether it has ended, or was called off. */
  get isOver(): boolean {
    return this.#over;
  }

  /** Pages pinned by it, one entry a pin. For checks. */
  get pinned(): readonly PageId[] {
    return this.#pinned;
  }

  /** Slots of its tier that it has taken and that no page has yet, by pool group. For checks. */
  *reservedSlots(): Generator<{ tier: number; group: number; slot: number }> {
    for (const { page, slot } of this.#moves) yield { tier: this.#tier, group: this.#groupOf(page), slot };
    for (const { group, slot } of this.#slots) yield { tier: this.#tier, group, slot };
  }

  /** Keeps a page where it is until the boarding is over. */
  pin(page: PageId): void {
    this.#storage.pin(page);
    this.#pinned.push(page);
  }

  /** Takes a slot of the tier for a page of a colder one, which is pinned already. */
  move(page: PageId): void {
    this.#moves.push({ page, slot: this.#storage.tiers[this.#tier].groups[this.#groupOf(page)].take() });
  }

  /** A new page of the device, held by nobody yet. With a `source`, a pinned page of a colder tier, it gets the same bytes. */
  create(group: number, priority: number, source: PageId): PageId {
    const page = this.#storage.createPinned(group, priority);
    this.#pinned.push(page);
    if (source !== NONE) this.#fills.push({ source, page });
    return page;
  }

  /** Takes slots that are free again when the boarding is over, for whoever takes them at once. */
  reserve(group: number, count: number): void {
    for (let i = 0; i < count; i++) this.#slots.push({ group, slot: this.#storage.tiers[this.#tier].groups[group].take() });
  }

  /**
   * Brings the bytes to their new slots; at once, if none have to be waited for.
   *
   * @returns pages whose bytes were not what had been stored; the boarding is to be cancelled then
   */
  async load(): Promise<PageId[]> {
    const storage = this.#storage;
    const { pages } = storage;
    const damaged: PageId[] = [];
    let reads: Promise<void>[] = [];
    let bytes = 0;
    const tasks = [
      ...this.#moves.map(({ page, slot }) => ({
        source: page,
        write: (read: Uint8Array) => this.#write(this.#groupOf(page), slot, read),
      })),
      ...this.#fills.map(({ source, page }) => ({
        source,
        write: (read: Uint8Array) => this.#write(this.#groupOf(page), pages.slot[page], read),
      })),
    ];
    for (const { source, write } of tasks) {
      await storage.landings.ofPage(source);
      if (this.#over) break;
      const group = storage.groupIn(pages.tier[source], pages.lifecycle[source]);
      const memory = storage.tiers[pages.tier[source]].memory;
      const view = memory?.view(group, pages.slot[source]);
      if (view) {
        write(view);
        continue;
      }
      const read = memory?.read(group, pages.slot[source]).then((result) => {
        if (result === null) damaged.push(source);
        else if (!this.#over) write(result);
      });
      if (read) reads.push(read);
      bytes += storage.bytesOf(source);
      if (bytes < storage.staging.limit) continue;
      await Promise.all(reads);
      reads = [];
      bytes = 0;
    }
    await Promise.all(reads);
    return damaged;
  }

  /** The pages that moved are in the warmer tier from now on. They stay pinned until `end`. */
  land(): void {
    for (const { page, slot } of this.#moves) this.#storage.moveTo(page, this.#tier, slot);
    for (const { source } of this.#fills) this.#storage.traffic?.copied(source, this.#tier);
    this.#moves.length = 0;
    this.#releaseSlots();
  }

  /** Unpins everything. */
  end(): void {
    this.#over = true;
    this.#storage.boardings.delete(this);
    for (const page of this.#pinned) this.#storage.unpin(page);
    this.#pinned.length = 0;
  }

  /** Leaves everything as it was. Does nothing once it is over. */
  cancel(): void {
    if (this.#over) return;
    for (const { page, slot } of this.#moves) this.#storage.tiers[this.#tier].groups[this.#groupOf(page)].slots.release(slot);
    this.#moves.length = 0;
    this.#releaseSlots();
    this.end();
  }

  #releaseSlots(): void {
    for (const { group, slot } of this.#slots) this.#storage.tiers[this.#tier].groups[group].slots.release(slot);
    this.#slots.length = 0;
  }

  #write(group: number, slot: number, bytes: Uint8Array): void {
    const storage = this.#storage;
    const { memory } = storage.tiers[this.#tier];
    if (memory !== null) {
      memory.write(group, slot, bytes);
      return;
    }
    const { memories, poolSlotBytes } = storage.poolGroups[group];
    const slots = Int32Array.of(slot);
    let at = 0;
    memories.forEach((pool, index) => {
      storage.device?.writeSlots(pool, slots, bytes.subarray(at, at + poolSlotBytes[index]));
      at += poolSlotBytes[index];
    });
  }

  #groupOf(page: PageId): number {
    return this.#storage.groupIn(this.#tier, this.#storage.pages.lifecycle[page]);
  }
}
