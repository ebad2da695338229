import { grownColumn, NONE } from '../columns.ts';
import { type BlockKey, hashBlock, KEY_BYTES, rootKeyOf } from './block-key.ts';
import type { BlockId, BlockTable } from './block-table.ts';
import { scopeIds } from './reuse-scope.ts';

/**
 * The keys of the blocks of a tree, computed when first asked for and remembered as long as the block is there. Takes no
 * memory until then; afterwards 36 bytes for every block id.
 */
export class BlockKeyTable {
  readonly #blocks: BlockTable;
  readonly #scopeOfRoot: (root: BlockId) => string;
  #keys = new Uint8Array(0);
  /** One above the generation of the block whose key is remembered, 0 where none is. */
  #known = new Uint32Array(0);
  #unknownPath = new Int32Array(64);

  constructor(blocks: BlockTable, scopeOfRoot: (root: BlockId) => string) {
    this.#blocks = blocks;
    this.#scopeOfRoot = scopeOfRoot;
  }

  /** The key of a block, or of a root. The caller owns the bytes. */
  keyOf(block: BlockId): BlockKey {
    this.#reserve();
    let numUnknown = 0;
    for (let at = block; at !== NONE && !this.#isKnown(at); at = this.#blocks.parent[at]) {
      if (numUnknown === this.#unknownPath.length) this.#unknownPath = grownColumn(this.#unknownPath, numUnknown * 2);
      this.#unknownPath[numUnknown++] = at;
    }
    while (numUnknown > 0) this.#remember(this.#unknownPath[--numUnknown]);
    return this.#stored(block).slice();
  }

  #isKnown(block: BlockId): boolean {
    return this.#known[this.#blocks.rowOf(block)] === this.#blocks.generation[block] + 1;
  }

  /** The block's parent is known, unless it is a root. */
  #remember(block: BlockId): void {
    const blocks = this.#blocks;
    const row = blocks.rowOf(block);
    const parent = blocks.parent[block];
    const key =
      parent === NONE
        ? rootKeyOf(scopeIds(this.#scopeOfRoot(block)))
        : hashBlock(this.#stored(parent), blocks.tokens(block), blocks.digests(block), 0, blocks.numTokens[block]);
    this.#keys.set(key, row * KEY_BYTES);
    this.#known[row] = blocks.generation[block] + 1;
  }

  #stored(block: BlockId): BlockKey {
    const row = this.#blocks.rowOf(block);
    return this.#keys.subarray(row * KEY_BYTES, (row + 1) * KEY_BYTES);
  }

  #reserve(): void {
    const length = this.#blocks.numRows;
    if (this.#known.length >= length) return;
    this.#keys = grownColumn(this.#keys, length * KEY_BYTES);
    this.#known = grownColumn(this.#known, length);
  }
}
