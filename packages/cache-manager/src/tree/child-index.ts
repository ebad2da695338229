import { NONE } from '../columns.ts';
import type { BlockId, BlockTable } from './block-table.ts';

const INITIAL_ENTRIES = 128;

/**
 * One open-addressed table for the children of all blocks, keyed by (parent, hash of the child's tokens).
 *
 * The hash only narrows the search: whoever looks up compares tokens. Deleting closes the gap, so no tombstones build up.
 */
export class ChildIndex {
  readonly #blocks: BlockTable;
  #entries = new Int32Array(INITIAL_ENTRIES).fill(NONE);
  #count = 0;

  constructor(blocks: BlockTable) {
    this.#blocks = blocks;
  }

  insert(block: BlockId): void {
    if ((this.#count + 1) * 2 > this.#entries.length) this.#rehash(this.#entries.length * 2);
    this.#place(block);
    this.#count++;
  }

  remove(block: BlockId): void {
    const entries = this.#entries;
    const mask = entries.length - 1;
    let hole = this.#home(block);
    while (entries[hole] !== block) hole = (hole + 1) & mask;
    for (let next = (hole + 1) & mask; entries[next] !== NONE; next = (next + 1) & mask) {
      const home = this.#home(entries[next]);
      // The entry may move into the hole only if its home does not lie after the hole on its way here.
      if (((next - home) & mask) < ((next - hole) & mask)) continue;
      entries[hole] = entries[next];
      hole = next;
    }
    entries[hole] = NONE;
    this.#count--;
  }

  /** Position from which `candidate` walks the blocks that may be the child of `parent` with that hash. */
  start(parent: BlockId, hash: number): number {
    return mix(parent, hash) & (this.#entries.length - 1);
  }

  /** The block at a position, NONE at the end of the walk. */
  candidate(position: number): BlockId {
    return this.#entries[position & (this.#entries.length - 1)];
  }

  /** Whether the index lists a block. For checks. */
  has(block: BlockId): boolean {
    for (let at = this.#home(block); this.candidate(at) !== NONE; at++) if (this.candidate(at) === block) return true;
    return false;
  }

  #home(block: BlockId): number {
    return mix(this.#blocks.parent[block], this.#blocks.hash[block]) & (this.#entries.length - 1);
  }

  #place(block: BlockId): void {
    const mask = this.#entries.length - 1;
    let position = this.#home(block);
    while (this.#entries[position] !== NONE) position = (position + 1) & mask;
    this.#entries[position] = block;
  }

  #rehash(length: number): void {
    const old = this.#entries;
    this.#entries = new Int32Array(length).fill(NONE);
    for (const block of old) if (block !== NONE) this.#place(block);
  }
}

function mix(parent: number, hash: number): number {
  let mixed = Math.imul(parent ^ 0x5bd1e995, 0x9e3779b1) ^ hash;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  return mixed ^ (mixed >>> 13);
}
