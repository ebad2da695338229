import { divUp } from '@bufferwise/core-policy';
import { grownColumn, NONE } from '../columns.ts';
import type { BlockId } from '../tree/block-table.ts';
import type { RadixTree } from '../tree/radix-tree.ts';
import type { TokenBuffer } from '../tree/token-seq.ts';
import type { GroupRules } from './group-rules.ts';

/** How far a token path reaches, in tokens: in the tree, as attention alone allows, and as a request can use it. */
export interface MatchDepths {
  /** Common beginning with anything published, before backoff. */
  path: number;
  /** What attention alone would allow, after backoff. */
  withoutState: number;
  /** The match. */
  usable: number;
}

/**
 * Finds the longest prefix that a request can continue from.
 *
 * The candidates are the path of equal blocks and, at every level, each sibling with a common beginning, where a path may
 * end. A candidate is cut until every required group has what it needs there; the furthest end wins, equal blocks win
 * ties. A path that is cut keeps every shorter end valid that was valid before, so only siblings that reach beyond the
 * best end so far are looked at.
 *
 * One matcher serves one manager; its answer is valid until the next call or the next change of the tree.
 */
export class Matcher {
  readonly depths: MatchDepths = { path: 0, withoutState: 0, usable: 0 };
  readonly #tree: RadixTree;
  readonly #tokensPerBlock: number;
  readonly #partialReuse: boolean;
  readonly #backoff: number;
  readonly #requiredAttention: readonly GroupRules[];
  readonly #requiredState: GroupRules | undefined;
  /** The path of equal blocks; a sibling under examination stands in at its level. */
  #path = new Int32Array(64);
  #bestSibling = NONE;
  #bestLevel = NONE;

  constructor(options: {
    tree: RadixTree;
    groups: readonly GroupRules[];
    tokensPerBlock: number;
    partialReuse: boolean;
    backoff: number;
  }) {
    this.#tree = options.tree;
    this.#tokensPerBlock = options.tokensPerBlock;
    this.#partialReuse = options.partialReuse;
    this.#backoff = options.backoff;
    const required = options.groups.filter((group) => group.policy === 'required');
    this.#requiredAttention = required.filter((group) => group.kind === 'attention');
    // The policy is all that tells lifecycles of state apart, so there is one required one at most.
    this.#requiredState = required.find((group) => group.kind === 'ssm');
  }

  /** The match of `tokens` under a root (NONE: nothing is published in that scope). Fills `depths`. */
  match(root: BlockId, tokens: TokenBuffer): number {
    this.depths.path = 0;
    this.depths.withoutState = 0;
    this.depths.usable = 0;
    this.#bestSibling = NONE;
    this.#bestLevel = NONE;
    if (root === NONE || tokens.length === 0) return 0;

    const numEqual = this.#walk(root, tokens);
    const { blocks } = this.#tree;
    if (numEqual > 0) {
      this.#consider((numEqual - 1) * this.#tokensPerBlock + blocks.numTokens[this.#path[numEqual - 1]], NONE, NONE);
    }
    if (this.#partialReuse) this.#considerSiblings(root, tokens, numEqual);
    return this.depths.usable;
  }

  /** The block of the match at an ordinal, below `divUp(usable, tokensPerBlock)`. */
  blockAt(ordinal: number): BlockId {
    return ordinal === this.#bestLevel ? this.#bestSibling : this.#path[ordinal];
  }

  /** Follows equal blocks; the last one may be a partial block that equals the rest. */
  #walk(root: BlockId, tokens: TokenBuffer): number {
    const tokensPerBlock = this.#tokensPerBlock;
    let parent = root;
    let count = 0;
    for (let offset = 0; offset < tokens.length; offset += tokensPerBlock) {
      const block = this.#tree.findChild(parent, tokens, offset, Math.min(tokensPerBlock, tokens.length - offset));
      if (block === NONE) break;
      if (count === this.#path.length) this.#path = grownColumn(this.#path, count * 2);
      this.#path[count++] = block;
      parent = block;
    }
    return count;
  }

  /** Deepest level first: a level can only help while its end lies beyond the best so far. */
  #considerSiblings(root: BlockId, tokens: TokenBuffer, numEqual: number): void {
    const { blocks } = this.#tree;
    const tokensPerBlock = this.#tokensPerBlock;
    if (numEqual === this.#path.length) this.#path = grownColumn(this.#path, numEqual * 2);
    for (let level = numEqual; level >= 0; level--) {
      const offset = level * tokensPerBlock;
      const limit = Math.min(tokensPerBlock, tokens.length - offset);
      if (limit <= 0) continue;
      if (!this.#couldImprove(offset + limit)) break;
      const parent = level === 0 ? root : this.#path[level - 1];
      const equal = level < numEqual ? this.#path[level] : NONE;
      for (let child = blocks.firstChild[parent]; child !== NONE; child = blocks.nextSibling[child]) {
        if (child === equal) continue;
        const common = blocks.commonPrefix(child, tokens, offset, limit);
        if (common === 0 || !this.#couldImprove(offset + common)) continue;
        this.#path[level] = child;
        this.#consider(offset + common, level, child);
      }
      if (equal !== NONE) this.#path[level] = equal;
    }
  }

  #couldImprove(end: number): boolean {
    const { path, withoutState, usable } = this.depths;
    return end > path || end - this.#backoff > usable || end - this.#backoff > withoutState;
  }

  #consider(end: number, level: number, sibling: BlockId): void {
    const { depths } = this;
    depths.path = Math.max(depths.path, end);
    depths.withoutState = Math.max(depths.withoutState, this.#usableEnd(end - this.#backoff, false));
    const usable = this.#usableEnd(end - this.#backoff, true);
    if (usable <= depths.usable) return;
    depths.usable = usable;
    this.#bestLevel = level;
    this.#bestSibling = sibling;
  }

  /** The longest end, at most `end`, on the present path at which every required group has what it needs. */
  #usableEnd(end: number, withState: boolean): number {
    let usable = end;
    for (;;) {
      const before = usable;
      if (withState && this.#requiredState !== undefined) usable = this.#lastSnapshot(this.#requiredState, usable);
      for (const group of this.#requiredAttention) {
        if (usable <= 0) return 0;
        usable = this.#coveredEnd(group, usable);
      }
      if (usable <= 0) return 0;
      if (usable === before) return usable;
    }
  }

  #lastSnapshot(group: GroupRules, end: number): number {
    const tokensPerBlock = this.#tokensPerBlock;
    for (let ordinal = divUp(end, tokensPerBlock) - 1; ordinal >= 0; ordinal--) {
      const limit = Math.min(tokensPerBlock, end - ordinal * tokensPerBlock);
      const count = this.#tree.largestSnapshot(this.#path[ordinal], group.id, limit);
      if (count > 0) return ordinal * tokensPerBlock + count;
    }
    return 0;
  }

  /** Where the first gap cuts a path that should reach `end`. */
  #coveredEnd(group: GroupRules, end: number): number {
    const tokensPerBlock = this.#tokensPerBlock;
    const numBlocks = divUp(end, tokensPerBlock);
    const staleBegin = group.staleBegin(end);
    const staleEnd = group.staleEnd(end);
    for (let ordinal = 0; ordinal < numBlocks; ordinal++) {
      if (ordinal === staleBegin && staleEnd > staleBegin) ordinal = staleEnd;
      if (ordinal >= numBlocks) break;
      const needed = Math.min(tokensPerBlock, end - ordinal * tokensPerBlock);
      const coverage = this.#tree.coverage(this.#path[ordinal], group.id);
      if (coverage < needed) return ordinal * tokensPerBlock + coverage;
    }
    return end;
  }
}
