import { SlotAllocator } from '@bufferwise/scratch-allocator';
import type { TierStore } from '../ports/tier-store.ts';
import type { ColdMemory } from './cold-memory.ts';
import { crc32c } from './crc32c.ts';

/** Room for one page in the store. Its key outlives the page, so that a page written over another takes no more room. */
interface Cell {
  readonly key: string;
  readonly number: number;
  /** CRC-32C of the page. Kept here rather than beside the bytes: a page of long ago, or of another cell, does not pass for it. */
  sum: number;
  /** Whether a page has the cell. */
  used: boolean;
  /** Settles when the last call on the key has ended; it never rejects. */
  last: Promise<void>;
}

/**
 * The pages of a tier in a `TierStore`.
 *
 * Calls on one key run one after the other. A page that is dropped while it is being written costs that write and no other: what
 * comes next overwrites it, or deletes it.
 */
export class DiskMemory implements ColdMemory {
  readonly #store: TierStore;
  readonly #prefix: string;
  readonly #slotBytes: readonly number[];
  readonly #groups: readonly { cells: Cell[]; free: SlotAllocator; bySlot: Map<number, Cell> }[];
  readonly #abort = new AbortController();
  readonly #busy = new Set<Promise<void>>();
  readonly #oneCell = new Int32Array(1);
  #opened: Promise<void> | null = null;

  /**
   * @param name short and the tier's own: begins all of its keys
   * @param slotBytes bytes of a slot of each pool group
   */
  constructor(store: TierStore, name: string, slotBytes: readonly number[]) {
    this.#store = store;
    this.#prefix = `${name}-`;
    this.#slotBytes = slotBytes;
    this.#groups = slotBytes.map(() => ({ cells: [], free: new SlotAllocator(0), bySlot: new Map() }));
  }

  reserve(group: number, numSlots: number): boolean {
    const { free } = this.#groups[group];
    if (free.slots < numSlots) free.resize(Math.max(numSlots, free.slots * 2));
    return true;
  }

  write(group: number, slot: number, bytes: Uint8Array): Promise<void> {
    const cell = this.#takeCell(group, slot);
    cell.sum = crc32c(bytes);
    return this.#next(cell, () => this.#store.put(cell.key, bytes, { signal: this.#abort.signal }));
  }

  view(): null {
    return null;
  }

  async read(group: number, slot: number): Promise<Uint8Array | null> {
    const cell = this.#groups[group].bySlot.get(slot);
    if (cell === undefined) return null;
    let bytes: Uint8Array | undefined;
    await this.#next(cell, async () => {
      bytes = await this.#store.get(cell.key, { signal: this.#abort.signal });
    }).catch(() => {});
    const whole = bytes !== undefined && bytes.length === this.#slotBytes[group] && crc32c(bytes) === cell.sum;
    return whole ? (bytes as Uint8Array) : null;
  }

  clear(group: number, slot: number): void {
    const { bySlot, free } = this.#groups[group];
    const cell = bySlot.get(slot);
    if (cell === undefined) return;
    bySlot.delete(slot);
    cell.used = false;
    free.release(cell.number);
    // Skipped when another page has the cell by then. What cannot be deleted is overwritten some day, or found at the next start.
    this.#next(cell, async () => {
      if (!cell.used) await this.#store.delete(cell.key, { signal: this.#abort.signal });
    }).catch(() => {});
  }

  move(group: number, from: number, to: number): void {
    const { bySlot } = this.#groups[group];
    const cell = bySlot.get(from);
    if (cell === undefined) return;
    bySlot.delete(from);
    bySlot.set(to, cell);
  }

  trim(): void {}

  async settled(): Promise<void> {
    while (this.#busy.size > 0) await Promise.all(this.#busy);
  }

  /** Aborts what is under way and deletes what is stored. */
  async close(): Promise<void> {
    this.#abort.abort();
    await this.settled();
    if (this.#opened === null) return;
    const keys = this.#groups.flatMap(({ cells }) => cells.map(({ key }) => key));
    await Promise.all(keys.map((key) => this.#store.delete(key).catch(() => {})));
  }

  #takeCell(group: number, slot: number): Cell {
    const { cells, free, bySlot } = this.#groups[group];
    free.allocate(1, this.#oneCell);
    const number = this.#oneCell[0];
    cells[number] ??= { key: `${this.#prefix}${group}-${number}`, number, sum: 0, used: false, last: Promise.resolve() };
    const cell = cells[number];
    cell.used = true;
    bySlot.set(slot, cell);
    return cell;
  }

  /** Runs a call on a key once all calls before it have ended. */
  #next(cell: Cell, call: () => Promise<void>): Promise<void> {
    this.#opened ??= this.#removeLeftovers();
    const opened = this.#opened;
    const result = cell.last.then(() => opened).then(call);
    const ended = result.then(ignore, ignore);
    cell.last = ended;
    this.#busy.add(ended);
    void ended.then(() => this.#busy.delete(ended));
    return result;
  }

  async #removeLeftovers(): Promise<void> {
    try {
      const keys = await this.#store.list({ signal: this.#abort.signal });
      await Promise.all(
        keys.filter((key) => key.startsWith(this.#prefix)).map((key) => this.#store.delete(key, { signal: this.#abort.signal })),
      );
    } catch {
      // A store that cannot do this will say so again when it is to keep a page.
    }
  }
}

function ignore(): void {}
