import { NONE } from '../columns.ts';
import type { PageId, PageTable } from '../page/page-table.ts';
import type { GroupRules } from '../request/group-rules.ts';
import { type BlockId, BlockTable } from './block-table.ts';
import { ChildIndex } from './child-index.ts';
import type { PageListener } from './page-listener.ts';
import { SiblingOrder } from './sibling-order.ts';
import { chainHash, hashText, hashTokens, type TokenHash } from './token-hash.ts';
import type { TokenBuffer } from './token-seq.ts';

/** What the tree tells when a page that nobody holds has left it: its slot is free again. */
export type PageFreed = (page: PageId) => void;

/**
 * The published blocks of every scope, matched by their tokens, and the pages that they list.
 *
 * A block stays only while it or a descendant lists a page. Losing a page that every match through its block needs takes
 * the block and its subtree along; losing any other takes that page alone. Pages that a request still holds outlive their
 * block; the tree only stops listing them.
 */
export class RadixTree {
  readonly blocks: BlockTable;
  /** The children of every block in the order of their tokens. */
  readonly order: SiblingOrder;
  /**
   * Counts how often a page left the tree while a request held it. A request that saw the same count before has nothing
   * to restore.
   */
  heldLosses = 0;
  /** Told of every page that begins or ceases to be listed. */
  listener: PageListener | null = null;
  readonly #index: ChildIndex;
  readonly #pages: PageTable;
  readonly #groups: readonly GroupRules[];
  readonly #roots = new Map<string, BlockId>();
  readonly #scopeOfRoot = new Map<BlockId, string>();
  readonly #freed: PageFreed;
  readonly #becameLeaf: (block: BlockId) => void;
  readonly #replaced: (page: PageId, by: PageId) => void;
  readonly #hash: TokenHash;

  constructor(options: {
    tokensPerBlock: number;
    groups: readonly GroupRules[];
    pages: PageTable;
    freed: PageFreed;
    /** Empty, when somebody else looks at it too. Default: one of its own. */
    blocks?: BlockTable;
    /** Called when the last child of a block is gone. */
    becameLeaf?: (block: BlockId) => void;
    /** Called before a page leaves its block for one that is good for more tokens. */
    replaced?: (page: PageId, by: PageId) => void;
    /** Decides how fast blocks are found, never which. */
    hash?: TokenHash;
  }) {
    this.blocks = options.blocks ?? new BlockTable(options.tokensPerBlock, options.groups.length);
    this.order = new SiblingOrder(this.blocks);
    this.#index = new ChildIndex(this.blocks);
    this.#pages = options.pages;
    this.#groups = options.groups;
    this.#freed = options.freed;
    this.#becameLeaf = options.becameLeaf ?? (() => {});
    this.#replaced = options.replaced ?? (() => {});
    this.#hash = options.hash ?? hashTokens;
  }

  /** The roots by scope key. For checks and tools. */
  get roots(): ReadonlyMap<string, BlockId> {
    return this.#roots;
  }

  /** The root of a scope, or NONE while nothing of it is published. */
  root(scope: string): BlockId {
    return this.#roots.get(scope) ?? NONE;
  }

  /** The scope of a root. */
  scopeOf(root: BlockId): string {
    return this.#scopeOfRoot.get(root) as string;
  }

  ensureRoot(scope: string): BlockId {
    const known = this.#roots.get(scope);
    if (known !== undefined) return known;
    const root = this.blocks.create(NONE, null, 0, 0);
    this.blocks.pathHash[root] = hashText(scope);
    this.#roots.set(scope, root);
    this.#scopeOfRoot.set(root, scope);
    return root;
  }

  /** The child of `parent` that holds exactly these `count` tokens, or NONE. */
  findChild(parent: BlockId, tokens: TokenBuffer, offset: number, count: number): BlockId {
    const { blocks } = this;
    // Most blocks are the only child. Such a one needs no index: comparing its tokens costs less than hashing those looked for.
    const first = blocks.childRoot[parent];
    if (first === NONE) return NONE;
    if (blocks.numTokens[first] === count && blocks.holds(first, tokens, offset)) return first;
    if (this.order.isOnlyChild(first)) return NONE;
    const hash = this.#hash(tokens.values, offset, count);
    for (let at = this.#index.start(parent, hash); ; at++) {
      const block = this.#index.candidate(at);
      if (block === NONE) return NONE;
      if (blocks.parent[block] !== parent || blocks.hash[block] !== hash || blocks.numTokens[block] !== count) continue;
      if (blocks.holds(block, tokens, offset)) return block;
    }
  }

  /**
   * Adds a child that `findChild` does not find. A partial sibling that is a prefix of it hands over its pages, counts
   * unchanged, and goes. The new block may be without pages: the caller links some, to it or behind it.
   */
  insertChild(parent: BlockId, tokens: TokenBuffer, offset: number, count: number): BlockId {
    const { blocks } = this;
    const block = blocks.create(blocks.ordinal[parent] + 1, tokens, offset, count);
    blocks.parent[block] = parent;
    blocks.pathHash[block] = chainHash(blocks.pathHash[parent], tokens.values[offset], tokens.values[offset + count - 1]);
    const first = blocks.childRoot[parent];
    this.order.insert(block);
    if (first === NONE) return block;
    // The first child was found without the index as long as it was the only one.
    if (!blocks.isIndexed(first)) this.#addToIndex(first);
    this.#addToIndex(block);
    const neighbour = blocks.previousSibling[block];
    if (neighbour !== NONE && this.#isBeginning(neighbour, tokens, offset, count)) this.#adopt(neighbour, block);
    return block;
  }

  /** Whether some child of `parent` is the beginning of these `count` tokens: it would hand its pages to a child that holds them. */
  hasBeginning(parent: BlockId, tokens: TokenBuffer, offset: number, count: number): boolean {
    this.order.seek(parent, tokens, offset, count);
    return this.order.before !== NONE && this.#isBeginning(this.order.before, tokens, offset, count);
  }

  /** Whether a child can be found by its tokens: by the index, or as the only one. For checks. */
  canBeFound(block: BlockId): boolean {
    return this.#index.has(block) || this.order.isOnlyChild(block);
  }

  /** The page that a block lists for an attention group, or for SSM the first of its snapshots; NONE when there is none. */
  pageOf(block: BlockId, group: number): PageId {
    return this.blocks.firstPage(block, group);
  }

  /** Tokens of the block for which its page of an attention group is good; 0 without a page. */
  coverage(block: BlockId, group: number): number {
    const page = this.blocks.firstPage(block, group);
    return page === NONE ? 0 : this.#pages.coverage[page];
  }

  /** The snapshot of the state after exactly `count` tokens of the block, or NONE. */
  snapshotAt(block: BlockId, group: number, count: number): PageId {
    let page = this.blocks.firstPage(block, group);
    while (page !== NONE && this.#pages.coverage[page] !== count) page = this.#pages.nextInBlock[page];
    return page;
  }

  /** The largest count, at most `limit`, at which the block has a snapshot; 0 when there is none. */
  largestSnapshot(block: BlockId, group: number, limit: number): number {
    let largest = 0;
    for (let page = this.blocks.firstPage(block, group); page !== NONE; page = this.#pages.nextInBlock[page]) {
      const count = this.#pages.coverage[page];
      if (count <= limit && count > largest) largest = count;
    }
    return largest;
  }

  /** Whether a page that is good for `coverage` tokens would be of use in the block. */
  wants(block: BlockId, group: number, coverage: number): boolean {
    if (this.#groups[group].kind === 'ssm') return this.snapshotAt(block, group, coverage) === NONE;
    return this.coverage(block, group) < coverage;
  }

  /**
   * Lists a page of nobody's list in a block that wants it. A narrower attention page leaves for it; snapshots at other
   * counts stay.
   */
  link(block: BlockId, page: PageId, coverage: number): void {
    const pages = this.#pages;
    const group = pages.lifecycle[page];
    const first = this.blocks.firstPage(block, group);
    if (this.#groups[group].kind === 'attention' && first !== NONE) {
      this.#replaced(first, page);
      this.#discard(first);
    }
    pages.block[page] = block;
    pages.coverage[page] = coverage;
    pages.nextInBlock[page] = this.blocks.firstPage(block, group);
    this.blocks.setFirstPage(block, group, page);
    this.blocks.numPages[block]++;
    this.listener?.listed(page);
  }

  /**
   * Takes a page out of the tree, with everything that goes along. Pages that nobody holds are freed; a held one stays
   * with its holders.
   */
  remove(page: PageId): void {
    const block = this.#pages.block[page];
    const rules = this.#groups[this.#pages.lifecycle[page]];
    this.#discard(page);
    // Most go leaf first: then there is no subtree to look through.
    const isBare = this.blocks.numPages[block] === 0 && this.blocks.childRoot[block] === NONE;
    if (!isBare && rules.everyMatchNeeds(this.blocks.ordinal[block])) this.#removeSubtree(block);
    else this.#prune(block);
  }

  /** On one path, the pages of the same group that `remove` would take along with a page, the last first. */
  *pagesBehind(page: PageId): Generator<PageId> {
    const { blocks } = this;
    const top = this.#pages.block[page];
    const group = this.#pages.lifecycle[page];
    if (!this.#groups[group].everyMatchNeeds(blocks.ordinal[top])) return;
    let block = top;
    while (blocks.childRoot[block] !== NONE) block = blocks.childRoot[block];
    for (; block !== top; block = blocks.parent[block]) {
      const other = blocks.firstPage(block, group);
      if (other !== NONE) yield other;
    }
  }

  /** Removes the block and then its ancestors for as long as they have neither pages nor children. */
  #prune(block: BlockId): void {
    const { blocks } = this;
    let current = block;
    while (current !== NONE && blocks.numPages[current] === 0 && blocks.childRoot[current] === NONE) {
      const parent = blocks.parent[current];
      this.#detach(current);
      current = parent;
    }
  }

  /**
   * Whether a block is the beginning of `count` tokens. No child of a block is the beginning of another, so of all of them
   * only the one just before can be it.
   */
  #isBeginning(block: BlockId, tokens: TokenBuffer, offset: number, count: number): boolean {
    const length = this.blocks.numTokens[block];
    return length < count && this.blocks.commonPrefix(block, tokens, offset, length) === length;
  }

  #addToIndex(block: BlockId): void {
    this.blocks.setHash(block, this.#hash);
    this.#index.insert(block);
  }

  #detach(block: BlockId): void {
    const { blocks } = this;
    const parent = blocks.parent[block];
    if (parent === NONE) {
      this.#roots.delete(this.scopeOf(block));
      this.#scopeOfRoot.delete(block);
    } else {
      this.order.remove(block);
      if (blocks.isIndexed(block)) {
        this.#index.remove(block);
        blocks.forgetHash(block);
      }
      blocks.parent[block] = NONE;
      if (blocks.childRoot[parent] === NONE) this.#becameLeaf(parent);
    }
    blocks.destroy(block);
  }

  #adopt(from: BlockId, to: BlockId): void {
    const pages = this.#pages;
    for (let group = 0; group < this.#groups.length; group++) {
      for (let page = this.blocks.firstPage(from, group); page !== NONE; page = this.blocks.firstPage(from, group)) {
        this.#unlink(page);
        this.link(to, page, pages.coverage[page]);
      }
    }
    this.#detach(from);
  }

  #removeSubtree(top: BlockId): void {
    const { blocks } = this;
    const parent = blocks.parent[top];
    let block = top;
    for (;;) {
      while (blocks.childRoot[block] !== NONE) block = blocks.childRoot[block];
      for (let group = 0; group < this.#groups.length; group++) {
        for (let page = blocks.firstPage(block, group); page !== NONE; page = blocks.firstPage(block, group)) this.#discard(page);
      }
      const above = blocks.parent[block];
      this.#detach(block);
      if (block === top) break;
      block = above;
    }
    this.#prune(parent);
  }

  /** Stops listing a page; frees it unless a request holds it. */
  #discard(page: PageId): void {
    this.#unlink(page);
    if (this.#pages.holds[page] > 0) this.heldLosses++;
    else this.#freed(page);
  }

  #unlink(page: PageId): void {
    this.listener?.unlisted(page);
    const pages = this.#pages;
    const block = pages.block[page];
    const group = pages.lifecycle[page];
    let at = this.blocks.firstPage(block, group);
    if (at === page) this.blocks.setFirstPage(block, group, pages.nextInBlock[page]);
    else {
      while (pages.nextInBlock[at] !== page) at = pages.nextInBlock[at];
      pages.nextInBlock[at] = pages.nextInBlock[page];
    }
    pages.nextInBlock[page] = NONE;
    pages.block[page] = NONE;
    this.blocks.numPages[block]--;
  }
}
