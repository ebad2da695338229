import { grownColumn, NONE } from '../columns.ts';
import type { BlockId } from '../tree/block-table.ts';
import type { RadixTree } from '../tree/radix-tree.ts';
import type { GroupRules } from './group-rules.ts';

/**
 * What one required attention group has along a path of equal blocks, read once, so that each end on the path, or in a
 * block that hangs from it, is judged without walking it again.
 */
export class AttentionPath {
  readonly rules: GroupRules;
  readonly #tree: RadixTree;
  /** Entry n: the last of the first n blocks whose page does not cover it whole, NONE when all are covered. */
  #lastGap = new Int32Array(65).fill(NONE);
  /** The first sink block that is not covered whole; the number of blocks read when all are. */
  #firstSinkGap = 0;

  constructor(rules: GroupRules, tree: RadixTree) {
    this.rules = rules;
    this.#tree = tree;
  }

  /** Reads the first `numBlocks` blocks of `path`. */
  read(path: Int32Array, numBlocks: number): void {
    if (numBlocks >= this.#lastGap.length) this.#lastGap = grownColumn(this.#lastGap, path.length + 1);
    const { id, numSinkBlocks, tokensPerBlock } = this.rules;
    const lastGap = this.#lastGap;
    let gap = NONE;
    this.#firstSinkGap = numBlocks;
    for (let ordinal = 0; ordinal < numBlocks; ordinal++) {
      lastGap[ordinal] = gap;
      if (this.#tree.coverage(path[ordinal], id) === tokensPerBlock) continue;
      gap = ordinal;
      if (ordinal < numSinkBlocks) this.#firstSinkGap = Math.min(this.#firstSinkGap, ordinal);
    }
    lastGap[numBlocks] = gap;
  }

  /**
   * The longest end, at most `end`, at which the group has what a match needs, inside a block that follows the first `level`
   * blocks of the path; the beginning of that block, or less, when there is none.
   */
  endInBlock(level: number, block: BlockId, end: number): number {
    const rules = this.rules;
    const begin = level * rules.tokensPerBlock;
    const sinkEnd = rules.staleBegin(end);
    const windowBegin = rules.staleEnd(end);
    // A shorter end needs no fewer of the blocks before, so these decide at once.
    if (this.#firstSinkGap < Math.min(sinkEnd, level) || this.#lastGap[level] >= windowBegin) return begin;
    if (level >= sinkEnd && level < windowBegin) return end;
    return Math.min(end, begin + this.#tree.coverage(block, rules.id));
  }
}
