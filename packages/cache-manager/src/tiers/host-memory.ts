import type { ColdMemory } from './cold-memory.ts';

/** Memory is had in pieces of about this size, so that a large quota costs nothing before it is used. */
const CHUNK_BYTES = 4 << 20;

/** The pages of a tier in this process's memory. */
export class HostMemory implements ColdMemory {
  readonly #groups: readonly SlotChunks[];

  /** @param slotBytes bytes of a slot of each pool group */
  constructor(slotBytes: readonly number[]) {
    this.#groups = slotBytes.map((bytes) => new SlotChunks(bytes));
  }

  /** Bytes that are allocated. */
  get allocatedBytes(): number {
    return this.#groups.reduce((sum, group) => sum + group.allocatedBytes, 0);
  }

  reserve(group: number, numSlots: number): boolean {
    return this.#groups[group].reserve(numSlots);
  }

  write(group: number, slot: number, bytes: Uint8Array): null {
    this.#groups[group].slot(slot).set(bytes);
    return null;
  }

  view(group: number, slot: number): Uint8Array {
    return this.#groups[group].slot(slot);
  }

  async read(group: number, slot: number): Promise<Uint8Array> {
    return this.view(group, slot);
  }

  clear(): void {}

  move(group: number, from: number, to: number): void {
    this.#groups[group].slot(to).set(this.#groups[group].slot(from));
  }

  trim(group: number, numSlots: number): void {
    this.#groups[group].trim(numSlots);
  }

  async settled(): Promise<void> {}

  async close(): Promise<void> {
    for (const group of this.#groups) group.trim(0);
  }
}

/** Equal slots in as many chunks as are in use. */
class SlotChunks {
  readonly #slotBytes: number;
  readonly #slotsPerChunk: number;
  readonly #chunks: Uint8Array[] = [];

  constructor(slotBytes: number) {
    this.#slotBytes = slotBytes;
    this.#slotsPerChunk = Math.max(1, Math.floor(CHUNK_BYTES / slotBytes));
  }

  get allocatedBytes(): number {
    return this.#chunks.length * this.#slotsPerChunk * this.#slotBytes;
  }

  reserve(numSlots: number): boolean {
    try {
      while (this.#chunks.length * this.#slotsPerChunk < numSlots)
        this.#chunks.push(new Uint8Array(this.#slotsPerChunk * this.#slotBytes));
      return true;
    } catch {
      return false;
    }
  }

  slot(slot: number): Uint8Array {
    const begin = (slot % this.#slotsPerChunk) * this.#slotBytes;
    return this.#chunks[Math.floor(slot / this.#slotsPerChunk)].subarray(begin, begin + this.#slotBytes);
  }

  trim(numSlots: number): void {
    this.#chunks.length = Math.min(this.#chunks.length, Math.ceil(numSlots / this.#slotsPerChunk));
  }
}
