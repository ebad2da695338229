import { grownColumn } from '../columns.ts';
import type { PageId } from '../page/page-table.ts';
import type { PageCommand } from '../ports/page-device.ts';
import type { StorageManager } from './storage-manager.ts';

/** Copies and clears of one step, collected by pool group and handed to the device as one submission. Used again and again. */
export class CommandBatch {
  readonly #storage: StorageManager;
  readonly #copies: SlotPairs[];
  readonly #clears: SlotPairs[];
  /** Copies by group. */
  readonly #numCopies: Int32Array;
  readonly #copied: (group: number, count: number) => void;

  /** @param copied told how many pages of a group were copied, once the device has taken the commands */
  constructor(storage: StorageManager, numGroups: number, copied: (group: number, count: number) => void) {
    this.#storage = storage;
    this.#numCopies = new Int32Array(numGroups);
    this.#copied = copied;
    this.#copies = storage.poolGroups.map(() => new SlotPairs());
    this.#clears = storage.poolGroups.map(() => new SlotPairs());
  }

  /** @param group whose page it is */
  copy(group: number, poolGroup: number, source: number, target: number): void {
    this.#copies[poolGroup].push(source, target);
    this.#numCopies[group]++;
  }

  clear(poolGroup: number, slot: number): void {
    this.#clears[poolGroup].push(slot, slot);
  }

  /**
   * Hands everything in, and forgets it whether the device takes it or not.
   *
   * @param created pages made for this step, held once each and known to nobody else: they are given back when the device throws
   */
  execute(created: readonly PageId[] = []): void {
    const commands: PageCommand[] = [];
    this.#storage.poolGroups.forEach(({ memories: pools }, index) => {
      const copies = this.#copies[index];
      if (copies.count > 0)
        commands.push({ kind: 'copy', pools, sources: copies.sources, targets: copies.targets, count: copies.count });
      const clears = this.#clears[index];
      if (clears.count > 0) commands.push({ kind: 'clear', pools, slots: clears.targets, count: clears.count });
      copies.count = 0;
      clears.count = 0;
    });
    if (commands.length === 0) return;
    try {
      this.#storage.device?.execute(commands);
    } catch (error) {
      this.#numCopies.fill(0);
      for (const page of created) this.#storage.release(page);
      throw error;
    }
    this.#tellCopies();
  }

  #tellCopies(): void {
    for (let group = 0; group < this.#numCopies.length; group++) {
      if (this.#numCopies[group] > 0) this.#copied(group, this.#numCopies[group]);
      this.#numCopies[group] = 0;
    }
  }
}

class SlotPairs {
  sources = new Int32Array(16);
  targets = new Int32Array(16);
  count = 0;

  push(source: number, target: number): void {
    if (this.count === this.sources.length) {
      this.sources = grownColumn(this.sources, this.count * 2);
      this.targets = grownColumn(this.targets, this.count * 2);
    }
    this.sources[this.count] = source;
    this.targets[this.count++] = target;
  }
}
