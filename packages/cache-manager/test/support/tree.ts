import { defineCacheConfig, LifecycleRegistry } from '@bufferwise/core-policy';
import { NONE } from '../../src/columns.ts';
import { type PageId, PageTable } from '../../src/page/page-table.ts';
import { type GroupRules, groupRules } from '../../src/request/group-rules.ts';
import { Matcher } from '../../src/request/match.ts';
import type { BlockId } from '../../src/tree/block-table.ts';
import { RadixTree } from '../../src/tree/radix-tree.ts';
import type { TokenHash } from '../../src/tree/token-hash.ts';
import { TokenBuffer, type TokenSeq } from '../../src/tree/token-seq.ts';
import { type LayerShape, model } from './stage.ts';

/** The rules of the groups that some layers have; every group in pool group 0. */
export function rulesOf(layers: readonly LayerShape[], tokensPerBlock = 4, minSnapshot = false): GroupRules[] {
  const lifecycles = LifecycleRegistry.fromConfig(defineCacheConfig(model(layers, { tokensPerBlock })));
  return groupRules({ lifecycles, poolGroupOf: () => 0, tokensPerBlock, minSnapshot });
}

/** A tree without a manager: pages are ids in a table, and those that are freed are remembered. */
export class Grove {
  readonly pages = new PageTable();
  readonly freed: PageId[] = [];
  readonly tree: RadixTree;
  readonly groups: readonly GroupRules[];
  readonly matcher: Matcher;

  constructor(layers: readonly LayerShape[], options: { tokensPerBlock?: number; hash?: TokenHash } = {}) {
    const { tokensPerBlock = 4, hash } = options;
    this.groups = rulesOf(layers, tokensPerBlock);
    this.tree = new RadixTree({
      tokensPerBlock,
      groups: this.groups,
      pages: this.pages,
      freed: (page) => {
        this.freed.push(page);
        this.pages.destroy(page);
      },
      hash,
    });
    this.matcher = new Matcher({ tree: this.tree, groups: this.groups, tokensPerBlock, partialReuse: true, backoff: 0 });
  }

  /** Puts the blocks of `tokens` in, the last one partial if need be, with a page of each given group in each. Returns the blocks. */
  plant(tokens: TokenSeq, groups: readonly number[] = [0], scope = ''): BlockId[] {
    const { tree } = this;
    const buffer = TokenBuffer.from(tokens);
    const blocks: BlockId[] = [];
    let parent = tree.ensureRoot(scope);
    for (let offset = 0; offset < buffer.length; offset += tree.blocks.tokensPerBlock) {
      const count = Math.min(tree.blocks.tokensPerBlock, buffer.length - offset);
      const known = tree.findChild(parent, buffer, offset, count);
      parent = known === NONE ? tree.insertChild(parent, buffer, offset, count) : known;
      blocks.push(parent);
      for (const group of groups) if (tree.wants(parent, group, count)) tree.link(parent, this.page(group), count);
    }
    return blocks;
  }

  /** A page that no block lists. */
  page(group: number): PageId {
    return this.pages.create(group, 0, 35);
  }

  match(tokens: TokenSeq, scope = ''): number {
    return this.matcher.match(this.tree.root(scope), TokenBuffer.from(tokens));
  }

  /** The block of a path, NONE where there is none. */
  find(tokens: TokenSeq, scope = ''): BlockId {
    const { tree } = this;
    const buffer = TokenBuffer.from(tokens);
    let block = tree.root(scope);
    for (let offset = 0; offset < buffer.length && block !== NONE; offset += tree.blocks.tokensPerBlock) {
      block = tree.findChild(block, buffer, offset, Math.min(tree.blocks.tokensPerBlock, buffer.length - offset));
    }
    return block;
  }

  /** The tokens of the children of a block, in the order in which they stand. */
  children(parent: BlockId): number[][] {
    const { blocks, order } = this.tree;
    const found: number[][] = [];
    for (let child = order.first(parent); child !== NONE; child = blocks.nextSibling[child]) {
      found.push(Array.from({ length: blocks.numTokens[child] }, (_, i) => blocks.tokenAt(child, i)));
    }
    return found;
  }
}
