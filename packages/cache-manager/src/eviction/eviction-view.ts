import { NONE } from '../columns.ts';
import type { PageId, PageTable } from '../page/page-table.ts';
import type { GroupRules } from '../request/group-rules.ts';
import type { QueueHome } from '../storage/tier.ts';
import type { BlockTable } from '../tree/block-table.ts';
import { PASSED, partOf } from './page-use.ts';

/** Tokens without a snapshot beyond which more make no difference. */
const FAR = 1 << 14;

/** Answers a policy from the tables of a manager; see `EvictablePages`. */
export class EvictionView {
  readonly numGroups: number;
  readonly table: PageTable;
  readonly #blocks: BlockTable;
  readonly #groups: readonly GroupRules[];
  readonly #home: QueueHome;

  constructor(options: { home: QueueHome; pages: PageTable; blocks: BlockTable; groups: readonly GroupRules[] }) {
    this.#home = options.home;
    this.numGroups = options.groups.length;
    this.table = options.pages;
    this.#blocks = options.blocks;
    this.#groups = options.groups;
  }

  get slots(): number {
    return this.#home.numSlots;
  }

  /** Whether all pages of a group save the same number of tokens. */
  isUniform(group: number): boolean {
    return this.#groups[group].kind === 'attention' && this.#groups[group].windowSize === null;
  }

  /** Whether pages of a group are snapshots of recurrent state. */
  isState(group: number): boolean {
    return this.#groups[group].kind === 'ssm';
  }

  /** Tokens of a whole page of a group. */
  leastTokensOf(group: number): number {
    return this.#groups[group].tokensPerBlock;
  }

  depthOf(page: PageId): number {
    const block = this.table.block[page];
    return this.#blocks.ordinal[block] * this.#blocks.tokensPerBlock + this.#blocks.numTokens[block];
  }

  savedTokensOf(page: PageId): number {
    const { kind, windowSize, tokensPerBlock } = this.#groups[this.table.lifecycle[page]];
    if (kind === 'ssm') return this.#tokensSinceSnapshot(page);
    if (windowSize === null) return tokensPerBlock;
    // Where paths end, a window without pages of full attention is as useless as they are without it: they go together.
    if (this.table.reuses[page] > 0 || partOf(this.table.use[page]) !== PASSED) return FAR;
    // A match there needs the whole window, and saves all tokens before: each page has its share in that.
    const depth = (this.#blocks.ordinal[this.table.block[page]] + 1) * tokensPerBlock;
    return (depth / Math.min(depth, windowSize)) * tokensPerBlock;
  }

  isLeaf(page: PageId): boolean {
    if (this.#home.passesDown) return true;
    const block = this.table.block[page];
    return (
      this.#blocks.childRoot[block] === NONE ||
      !this.#groups[this.table.lifecycle[page]].everyMatchNeeds(this.#blocks.ordinal[block])
    );
  }

  contentHashOf(page: PageId): number {
    return contentHash(this.#blocks.pathHash[this.table.block[page]], this.table.lifecycle[page]);
  }

  /** Tokens between a snapshot and the one before it on its path, as far as that is worth looking. */
  #tokensSinceSnapshot(page: PageId): number {
    const blocks = this.#blocks;
    const { block, coverage, lifecycle, nextInBlock } = this.table;
    const group = lifecycle[page];
    let at = block[page];
    let before = 0;
    for (let other = blocks.firstPage(at, group); other !== NONE; other = nextInBlock[other]) {
      if (coverage[other] < coverage[page] && coverage[other] > before) before = coverage[other];
    }
    if (before > 0) return coverage[page] - before;
    let tokens = coverage[page];
    for (at = blocks.parent[at]; at !== NONE && tokens < FAR; at = blocks.parent[at]) {
      for (let other = blocks.firstPage(at, group); other !== NONE; other = nextInBlock[other])
        before = Math.max(before, coverage[other]);
      if (before > 0) return tokens + blocks.tokensPerBlock - before;
      if (blocks.parent[at] !== NONE) tokens += blocks.tokensPerBlock;
    }
    return tokens;
  }
}

/** The hash of what a block's page of a group holds. */
export function contentHash(pathHash: number, group: number): number {
  return pathHash ^ Math.imul(group, 0x85ebca6b);
}
