import { NONE } from '../columns.ts';
import type { BlockId, BlockTable } from './block-table.ts';
import type { TokenBuffer } from './token-seq.ts';

/**
 * Keeps the children of every block in the order of their tokens, so that those with the longest common beginning are
 * neighbours of the place where a piece of tokens would stand.
 *
 * One balanced search tree for each parent (a treap: random priorities keep it shallow), whose links are columns of the block
 * table; neighbours are linked as well. A beginning stands before what it begins. Search and insertion compare tokens of
 * O(log children) blocks, removal compares none; no garbage.
 */
export class SiblingOrder {
  readonly #blocks: BlockTable;
  /** The last child that stands before the tokens of the latest `seek`, and the first that does not. */
  before: BlockId = NONE;
  behind: BlockId = NONE;

  constructor(blocks: BlockTable) {
    this.#blocks = blocks;
  }

  /** Finds the place of `count` tokens among the children of `parent`: sets `before` and `behind`. */
  seek(parent: BlockId, tokens: TokenBuffer, offset: number, count: number): void {
    const blocks = this.#blocks;
    this.before = NONE;
    this.behind = NONE;
    let at = blocks.childRoot[parent];
    while (at !== NONE) {
      if (blocks.compareWith(at, tokens, offset, count) < 0) {
        this.before = at;
        at = blocks.higher[at];
      } else {
        this.behind = at;
        at = blocks.lower[at];
      }
    }
  }

  /** The child of `parent` that stands first, NONE when there is none. */
  first(parent: BlockId): BlockId {
    const { childRoot, lower } = this.#blocks;
    let at = childRoot[parent];
    while (at !== NONE && lower[at] !== NONE) at = lower[at];
    return at;
  }

  /** Puts a block among the children of its parent. None of them has the same tokens. */
  insert(block: BlockId): void {
    const blocks = this.#blocks;
    const parent = blocks.parent[block];
    if (blocks.childRoot[parent] === NONE) {
      blocks.childRoot[parent] = block;
      return;
    }
    const weight = weightOf(block);
    // Down to the place in the search tree that the weight allows.
    let above: BlockId = NONE;
    let wentHigher = false;
    let before: BlockId = NONE;
    let behind: BlockId = NONE;
    let at = blocks.childRoot[parent];
    while (at !== NONE && weightOf(at) >= weight) {
      above = at;
      wentHigher = blocks.compare(at, block) < 0;
      if (wentHigher) before = at;
      else behind = at;
      at = wentHigher ? blocks.higher[at] : blocks.lower[at];
    }
    this.#setLink(parent, above, wentHigher, block);
    // What hung there is split into what stands before the block and what stands behind.
    let lowEnd: BlockId = NONE;
    let highEnd: BlockId = NONE;
    blocks.lower[block] = NONE;
    blocks.higher[block] = NONE;
    while (at !== NONE) {
      if (blocks.compare(at, block) < 0) {
        this.#hang(at, lowEnd === NONE ? block : lowEnd, lowEnd !== NONE);
        lowEnd = at;
        before = at;
        at = blocks.higher[at];
      } else {
        this.#hang(at, highEnd === NONE ? block : highEnd, highEnd === NONE);
        highEnd = at;
        behind = at;
        at = blocks.lower[at];
      }
    }
    if (lowEnd !== NONE) blocks.higher[lowEnd] = NONE;
    if (highEnd !== NONE) blocks.lower[highEnd] = NONE;
    this.#linkNeighbours(before, block);
    this.#linkNeighbours(block, behind);
  }

  remove(block: BlockId): void {
    const blocks = this.#blocks;
    const parent = blocks.parent[block];
    if (this.isOnlyChild(block)) {
      blocks.childRoot[parent] = NONE;
      return;
    }
    let above: BlockId = blocks.above[block];
    let wentHigher = above !== NONE && blocks.higher[above] === block;
    // Both sides are joined where the block hung.
    let low = blocks.lower[block];
    let high = blocks.higher[block];
    while (low !== NONE || high !== NONE) {
      const takeLow = high === NONE || (low !== NONE && weightOf(low) >= weightOf(high));
      const next = takeLow ? low : high;
      this.#setLink(parent, above, wentHigher, next);
      above = next;
      wentHigher = takeLow;
      if (takeLow) low = blocks.higher[next];
      else high = blocks.lower[next];
    }
    this.#setLink(parent, above, wentHigher, NONE);
    const previous = blocks.previousSibling[block];
    const next = blocks.nextSibling[block];
    if (previous !== NONE) blocks.nextSibling[previous] = next;
    if (next !== NONE) blocks.previousSibling[next] = previous;
    blocks.above[block] = NONE;
    blocks.lower[block] = NONE;
    blocks.higher[block] = NONE;
    blocks.nextSibling[block] = NONE;
    blocks.previousSibling[block] = NONE;
  }

  /** Most blocks are. */
  isOnlyChild(block: BlockId): boolean {
    return this.#blocks.previousSibling[block] === NONE && this.#blocks.nextSibling[block] === NONE;
  }

  /** Hangs `block` (NONE: nothing) where a search that comes from `above` looks for it. */
  #setLink(parent: BlockId, above: BlockId, higher: boolean, block: BlockId): void {
    if (above !== NONE) {
      this.#hang(block, above, higher);
      return;
    }
    this.#blocks.childRoot[parent] = block;
    if (block !== NONE) this.#blocks.above[block] = NONE;
  }

  #hang(block: BlockId, above: BlockId, higher: boolean): void {
    if (higher) this.#blocks.higher[above] = block;
    else this.#blocks.lower[above] = block;
    if (block !== NONE) this.#blocks.above[block] = above;
  }

  #linkNeighbours(before: BlockId, behind: BlockId): void {
    if (before !== NONE) this.#blocks.nextSibling[before] = behind;
    if (behind !== NONE) this.#blocks.previousSibling[behind] = before;
  }
}

/** The priority of a block in its search tree: the heavier is nearer to the root. As good as random, and not stored. */
function weightOf(block: BlockId): number {
  let mixed = Math.imul(block ^ 0x2545f491, 0x9e3779b1);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
