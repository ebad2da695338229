import { divUp } from '@bufferwise/core-policy';
import { grownColumn, NONE } from '../columns.ts';
import type { BlockId } from '../tree/block-table.ts';
import type { RadixTree } from '../tree/radix-tree.ts';
import type { TokenBuffer } from '../tree/token-seq.ts';
import { AttentionPath } from './attention-path.ts';
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
 * end. Of the ends at which every required group has what it needs the furthest wins. Ties: equal blocks come first; of
 * siblings one that has the optional state there, then the one with more in common.
 *
 * A sibling shares all blocks before its own with the path of equal blocks, so only an end inside its own block can be
 * news (and, with a backoff, an end on the equal blocks that these could not reach alone). Siblings are visited in falling
 * order of what they have in common, and only as long as one could still be better.
 *
 * One matcher serves one manager; its answer is valid until the next call or the next change of the tree.
 */
export class Matcher {
  readonly depths: MatchDepths = { path: 0, withoutState: 0, usable: 0 };
  readonly #tree: RadixTree;
  readonly #tokensPerBlock: number;
  readonly #partialReuse: boolean;
  readonly #backoff: number;
  readonly #needs: Readonly<Record<'required' | 'withOptional', MatchNeeds>>;
  // The policy is all that tells lifecycles of state apart, so there is one of each policy at most.
  readonly #optionalState: GroupRules | undefined;
  /** What the running match needs. */
  #need: MatchNeeds;
  /** The path of equal blocks. */
  #path = new Int32Array(64);
  /** Ends up to here on the path of equal blocks have been judged. */
  #equalReach = 0;
  /** The sibling that the best path ends in, NONE while that is the path of equal blocks. */
  #bestSibling: BlockId = NONE;
  #bestLevel = NONE;
  /** The sibling in which the common beginning ends, if it goes beyond the path of equal blocks. */
  #longestSibling: BlockId = NONE;
  /** Whether the best sibling has the optional state at its end. */
  #bestHasState = false;

  constructor(options: {
    tree: RadixTree;
    groups: readonly GroupRules[];
    tokensPerBlock: number;
    partialReuse: boolean;
    backoff: number;
  }) {
    const { tree, groups } = options;
    this.#tree = tree;
    this.#tokensPerBlock = options.tokensPerBlock;
    this.#partialReuse = options.partialReuse;
    this.#backoff = options.backoff;
    const required = groups.filter(({ policy }) => policy === 'required');
    const shared = groups.filter(({ policy }) => policy !== 'private');
    this.#needs = { required: matchNeeds(required, tree), withOptional: matchNeeds(shared, tree) };
    this.#need = this.#needs.required;
    this.#optionalState = groups.find(({ policy, kind }) => policy === 'optional' && kind === 'ssm');
  }

  /**
   * The match of `tokens` under a root (NONE: nothing is published in that scope). Fills `depths`.
   *
   * @param withOptional whether it ends where optional groups are complete as well
   */
  match(root: BlockId, tokens: TokenBuffer, withOptional = false): number {
    const { depths } = this;
    this.#need = withOptional ? this.#needs.withOptional : this.#needs.required;
    depths.path = 0;
    depths.withoutState = 0;
    depths.usable = 0;
    this.#bestSibling = NONE;
    this.#bestLevel = NONE;
    this.#longestSibling = NONE;
    this.#bestHasState = false;
    this.#equalReach = 0;
    if (root === NONE || tokens.length === 0) return 0;

    const numEqual = this.#walk(root, tokens);
    for (const attention of this.#need.attention) attention.read(this.#path, numEqual);
    if (numEqual > 0) {
      depths.path = (numEqual - 1) * this.#tokensPerBlock + this.#tree.blocks.numTokens[this.#path[numEqual - 1]];
      this.#considerEqual(depths.path - this.#backoff);
    }
    if (this.#partialReuse) this.#considerSiblings(root, tokens, numEqual);
    if (this.#bestLevel !== NONE) this.#append(this.#bestLevel, this.#bestSibling);
    return depths.usable;
  }

  /** The blocks of the match, `divUp(usable, tokensPerBlock)` of them; what follows is no part of it. The next match changes them. */
  get path(): Int32Array {
    return this.#path;
  }

  /** The block of the match at an ordinal, below `divUp(usable, tokensPerBlock)`. */
  blockAt(ordinal: number): BlockId {
    return this.#path[ordinal];
  }

  /** Whether the match ends in a block that others go on from differently, and not on the path with the longest common beginning. */
  get endsInSibling(): boolean {
    return this.#bestSibling !== NONE;
  }

  /** The block of the longest common beginning at an ordinal, below `divUp(depths.path, tokensPerBlock)`; unless `endsInSibling`. */
  pathBlockAt(ordinal: number): BlockId {
    const last = divUp(this.depths.path, this.#tokensPerBlock) - 1;
    return ordinal === last && this.#longestSibling !== NONE ? this.#longestSibling : this.#path[ordinal];
  }

  /**
   * How far each required group alone would have allowed the last match, on the path with the longest common beginning.
   *
   * @param limit tokens of that path that count, above 0
   */
  groupEnds(limit: number): { rules: GroupRules; endpoint: number }[] {
    const tokensPerBlock = this.#tokensPerBlock;
    const attention = this.#need.attention.map((path) => ({
      rules: path.rules,
      endpoint: this.#groupEnd(limit, (level, block, end) => path.endInBlock(level, block, end)),
    }));
    const states = this.#need.states.map((rules) => ({
      rules,
      endpoint: this.#groupEnd(limit, (level, block, end) => {
        const begin = level * tokensPerBlock;
        return begin + this.#tree.largestSnapshot(block, rules.id, end - begin);
      }),
    }));
    return [...attention, ...states];
  }

  /** The furthest end up to `limit` that `endInBlock` names behind the beginning of its block; 0 when there is none. */
  #groupEnd(limit: number, endInBlock: (level: number, block: BlockId, end: number) => number): number {
    const tokensPerBlock = this.#tokensPerBlock;
    for (let level = divUp(limit, tokensPerBlock) - 1; level >= 0; level--) {
      const end = endInBlock(level, this.pathBlockAt(level), Math.min(limit, (level + 1) * tokensPerBlock));
      if (end > level * tokensPerBlock) return end;
    }
    return 0;
  }

  /** Follows equal blocks; the last one may be a partial block that equals the rest. */
  #walk(root: BlockId, tokens: TokenBuffer): number {
    const tokensPerBlock = this.#tokensPerBlock;
    let parent = root;
    let count = 0;
    for (let offset = 0; offset < tokens.length; offset += tokensPerBlock) {
      const block = this.#tree.findChild(parent, tokens, offset, Math.min(tokensPerBlock, tokens.length - offset));
      if (block === NONE) break;
      this.#append(count++, block);
      parent = block;
    }
    return count;
  }

  #append(ordinal: number, block: BlockId): void {
    if (ordinal === this.#path.length) this.#path = grownColumn(this.#path, ordinal * 2);
    this.#path[ordinal] = block;
  }

  /** Judges the ends on the path of equal blocks up to `limit`, as far as they are news. */
  #considerEqual(limit: number): void {
    if (limit <= this.#equalReach) return;
    const { depths } = this;
    const usable = this.#equalEnd(limit, true);
    const withoutState = this.#need.states.length === 0 ? usable : this.#equalEnd(limit, false);
    this.#equalReach = limit;
    depths.withoutState = Math.max(depths.withoutState, withoutState);
    if (usable <= depths.usable) return;
    depths.usable = usable;
    this.#bestLevel = NONE;
    this.#bestSibling = NONE;
  }

  /** The longest usable end on the path of equal blocks, at most `limit` and behind `#equalReach`; 0 when there is none. */
  #equalEnd(limit: number, withState: boolean): number {
    const tokensPerBlock = this.#tokensPerBlock;
    for (let level = divUp(limit, tokensPerBlock) - 1; (level + 1) * tokensPerBlock > this.#equalReach; level--) {
      const end = this.#endInBlock(level, this.#path[level], Math.min(limit, (level + 1) * tokensPerBlock), withState);
      if (end > this.#equalReach) return end;
    }
    return 0;
  }

  /**
   * The longest usable end, at most `limit`, that lies inside a block which follows the first `level` equal blocks; 0 when
   * there is none.
   */
  #endInBlock(level: number, block: BlockId, limit: number, withState: boolean): number {
    const { attention, states, wholeBlocks } = this.#need;
    const begin = level * this.#tokensPerBlock;
    let end = limit;
    for (;;) {
      const before = end;
      if (withState) for (const { id } of states) end = begin + this.#tree.largestSnapshot(block, id, end - begin);
      for (const path of attention) {
        if (end <= begin) return 0;
        end = path.endInBlock(level, block, end);
      }
      if (end <= begin || (wholeBlocks && end < begin + this.#tokensPerBlock)) return 0;
      if (end === before) return end;
    }
  }

  /** Deepest level first: a level can only help while its end lies beyond the best so far. */
  #considerSiblings(root: BlockId, tokens: TokenBuffer, numEqual: number): void {
    const tokensPerBlock = this.#tokensPerBlock;
    for (let level = numEqual; level >= 0; level--) {
      const offset = level * tokensPerBlock;
      const limit = Math.min(tokensPerBlock, tokens.length - offset);
      if (limit <= 0) continue;
      if (!this.#couldImprove(offset + limit)) break;
      const parent = level === 0 ? root : this.#path[level - 1];
      this.#considerChildren(parent, tokens, level, limit, level < numEqual ? this.#path[level] : NONE);
    }
  }

  /** The children of one block, those with more in common first. They stand around the place of the tokens on both sides. */
  #considerChildren(parent: BlockId, tokens: TokenBuffer, level: number, limit: number, equal: BlockId): void {
    const { blocks, order } = this.#tree;
    const offset = level * this.#tokensPerBlock;
    order.seek(parent, tokens, offset, limit);
    let before = order.before;
    let behind = order.behind === equal && equal !== NONE ? blocks.nextSibling[equal] : order.behind;
    let beforeCommon = before === NONE ? 0 : blocks.commonPrefix(before, tokens, offset, limit);
    let behindCommon = behind === NONE ? 0 : blocks.commonPrefix(behind, tokens, offset, limit);
    for (;;) {
      const isBefore = beforeCommon >= behindCommon;
      const common = isBefore ? beforeCommon : behindCommon;
      if (common === 0 || !this.#couldImprove(offset + common)) return;
      this.#considerSibling(level, isBefore ? before : behind, offset + common);
      if (isBefore) {
        before = blocks.previousSibling[before];
        beforeCommon = before === NONE ? 0 : blocks.commonPrefix(before, tokens, offset, limit);
      } else {
        behind = blocks.nextSibling[behind];
        behindCommon = behind === NONE ? 0 : blocks.commonPrefix(behind, tokens, offset, limit);
      }
    }
  }

  #couldImprove(end: number): boolean {
    const { path, withoutState, usable } = this.depths;
    const backedOff = end - this.#backoff;
    if (end > path || backedOff > usable || backedOff > withoutState) return true;
    return backedOff === usable && this.#couldTie();
  }

  /** Whether a sibling that ends where the best one does could still be preferred. */
  #couldTie(): boolean {
    return this.#optionalState !== undefined && this.#bestSibling !== NONE && !this.#bestHasState;
  }

  #considerSibling(level: number, sibling: BlockId, end: number): void {
    const { depths } = this;
    if (end > depths.path) {
      depths.path = end;
      this.#longestSibling = sibling;
    }
    const begin = level * this.#tokensPerBlock;
    const limit = end - this.#backoff;
    this.#considerEqual(Math.min(limit, begin));
    if (limit <= begin) return;
    const usable = this.#endInBlock(level, sibling, limit, true);
    const withoutState = this.#need.states.length === 0 ? usable : this.#endInBlock(level, sibling, limit, false);
    depths.withoutState = Math.max(depths.withoutState, withoutState);
    if (usable < depths.usable || usable === 0) return;
    const hasState =
      this.#optionalState !== undefined && this.#tree.snapshotAt(sibling, this.#optionalState.id, usable - begin) !== NONE;
    if (usable === depths.usable && !(this.#couldTie() && hasState)) return;
    depths.usable = usable;
    this.#bestLevel = level;
    this.#bestSibling = sibling;
    this.#bestHasState = hasState;
  }
}

/** What the end of a match depends on. */
interface MatchNeeds {
  readonly attention: readonly AttentionPath[];
  readonly states: readonly GroupRules[];
  /** Whether a match can only end where a block ends: optional attention continues from nowhere else. */
  readonly wholeBlocks: boolean;
}

function matchNeeds(groups: readonly GroupRules[], tree: RadixTree): MatchNeeds {
  const attention = groups.filter(({ kind }) => kind === 'attention');
  return {
    attention: attention.map((rules) => new AttentionPath(rules, tree)),
    states: groups.filter(({ kind }) => kind === 'ssm'),
    wholeBlocks: attention.some(({ policy }) => policy === 'optional'),
  };
}
