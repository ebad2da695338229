import { grownColumn, grownLength, NONE } from '../columns.ts';
import type { TokenHash } from './token-hash.ts';
import { compareDigests, type MultimodalDigest, type TokenBuffer } from './token-seq.ts';

/** Where a block's record begins in its table. Ids are used again; a generation tells whether an old id still names the same block. */
export type BlockId = number;

const INITIAL_BLOCKS = 64;
/** Fields of a record, of four bytes each, before the first pages of the lifecycles. */
const NUM_FIELDS = 14;

/**
 * The nodes of the radix trees as records: who hangs where, which tokens, which pages.
 *
 * A root stands for the empty beginning of one scope; it has no tokens and ordinal -1. Only full blocks have children.
 * The table knows no rule; `RadixTree` keeps it in order.
 *
 * Each field is a view of all records that begins at its place in the first: `blocks.parent[block]`. So the fields of one block
 * stand side by side, and whoever touches one has fetched the others.
 */
export class BlockTable {
  readonly tokensPerBlock: number;
  readonly numLifecycles: number;
  parent!: Int32Array;
  ordinal!: Int32Array;
  numTokens!: Int32Array;
  /** Hash of the tokens of a block that is in the `ChildIndex`. */
  hash!: Int32Array;
  /** A hash of the scope and of some tokens of every block from the root on: equal paths have equal ones. */
  pathHash!: Int32Array;
  generation!: Uint32Array;
  /** The root of the search tree of the block's children, NONE when it has none. Kept by `SiblingOrder`, as are the next five. */
  childRoot!: Int32Array;
  above!: Int32Array;
  lower!: Int32Array;
  higher!: Int32Array;
  /** The siblings on both sides, in the order of their tokens. */
  nextSibling!: Int32Array;
  previousSibling!: Int32Array;
  numPages!: Int32Array;
  /** Blocks that there will be when all memory is used; 0 when nobody knows. Spares the last steps of growing. */
  expectedSize = 0;
  #indexed!: Int32Array;
  /** Heads of the chains of pages: entry `block + lifecycle`. */
  #firstPage!: Int32Array;
  #records!: Int32Array;
  /** Base-2 logarithm of the length of a record: as a power of two, records begin where the processor begins to fetch. */
  readonly #logFields: number;
  #tokens: Uint32Array;
  #digests = new Map<BlockId, Map<number, MultimodalDigest>>();
  #free: number[] = [];
  #size = 0;
  #live = 0;

  constructor(tokensPerBlock: number, numLifecycles: number) {
    this.tokensPerBlock = tokensPerBlock;
    this.numLifecycles = numLifecycles;
    this.#logFields = 32 - Math.clz32(NUM_FIELDS + numLifecycles - 1);
    this.#setRecords(new Int32Array(INITIAL_BLOCKS << this.#logFields));
    this.#tokens = new Uint32Array(INITIAL_BLOCKS * tokensPerBlock);
  }

  /** Blocks in use, roots included. */
  get count(): number {
    return this.#live;
  }

  /** Blocks that there were at the same time, at most: every live block's row is below. */
  get size(): number {
    return this.#size;
  }

  /** Blocks that the table has room for. */
  get numRows(): number {
    return this.#records.length >> this.#logFields;
  }

  /** The place of a block among all blocks, from 0 on. */
  rowOf(block: BlockId): number {
    return block >> this.#logFields;
  }

  /** A block without links that holds `count` tokens of `tokens` from `offset` on. */
  create(ordinal: number, tokens: TokenBuffer | null, offset: number, count: number): BlockId {
    const block = this.#free.pop() ?? this.#nextId();
    this.#live++;
    this.ordinal[block] = ordinal;
    this.numTokens[block] = count;
    if (tokens !== null) this.#storeTokens(block, tokens, offset, count);
    return block;
  }

  /** Gives the id back. The block must have neither links nor pages: all of its columns are as in a new one. */
  destroy(block: BlockId): void {
    this.generation[block]++;
    this.ordinal[block] = NONE;
    this.numTokens[block] = NONE;
    if (this.#digests.size > 0) this.#digests.delete(block);
    this.#free.push(block);
    this.#live--;
  }

  isLive(block: BlockId): boolean {
    return this.numTokens[block] !== NONE;
  }

  /** Whether the block has a hash, because it is in the `ChildIndex`. */
  isIndexed(block: BlockId): boolean {
    return this.#indexed[block] === 1;
  }

  setHash(block: BlockId, hash: TokenHash): void {
    this.hash[block] = hash(this.#tokens, this.#tokensBegin(block), this.numTokens[block]);
    this.#indexed[block] = 1;
  }

  forgetHash(block: BlockId): void {
    this.#indexed[block] = 0;
  }

  firstPage(block: BlockId, lifecycle: number): number {
    return this.#firstPage[block + lifecycle];
  }

  setFirstPage(block: BlockId, lifecycle: number, page: number): void {
    this.#firstPage[block + lifecycle] = page;
  }

  tokenAt(block: BlockId, index: number): number {
    return this.#tokens[this.#tokensBegin(block) + index];
  }

  /** The token ids of a block; where a digest stands, its first four bytes. A view: valid until the table grows or the block goes. */
  tokens(block: BlockId): Uint32Array {
    const base = this.#tokensBegin(block);
    return this.#tokens.subarray(base, base + this.numTokens[block]);
  }

  /** The digests of a block by position; undefined when it has none. Most tables have none at all, and then it costs nothing to ask. */
  digests(block: BlockId): ReadonlyMap<number, MultimodalDigest> | undefined {
    return this.#digests.size === 0 ? undefined : this.#digests.get(block);
  }

  /** Whether the block's tokens, all of them, stand in `tokens` from `offset` on. There are as many there. */
  holds(block: BlockId, tokens: TokenBuffer, offset: number): boolean {
    const count = this.numTokens[block];
    const mine = this.#tokens;
    const theirs = tokens.values;
    const base = this.#tokensBegin(block);
    let i = 0;
    // Four at a time: most blocks that are compared are the same.
    for (; i + 4 <= count; i += 4) {
      const at = base + i;
      const other = offset + i;
      const differ =
        (mine[at] ^ theirs[other]) |
        (mine[at + 1] ^ theirs[other + 1]) |
        (mine[at + 2] ^ theirs[other + 2]) |
        (mine[at + 3] ^ theirs[other + 3]);
      if (differ !== 0) return false;
    }
    for (; i < count; i++) if (mine[base + i] !== theirs[offset + i]) return false;
    if (this.#digests.size === 0 && tokens.digests === null) return true;
    return this.commonPrefix(block, tokens, offset, count) === count;
  }

  /** Tokens at the beginning of the block that equal those of `tokens` from `offset` on. */
  commonPrefix(block: BlockId, tokens: TokenBuffer, offset: number, limit: number): number {
    const end = Math.min(limit, this.numTokens[block]);
    const base = this.#tokensBegin(block);
    const mine = this.#tokens;
    const theirs = tokens.values;
    let common = 0;
    while (common < end && mine[base + common] === theirs[offset + common]) common++;
    const digests = this.digests(block);
    if (digests === undefined && tokens.digests === null) return common;
    for (let i = 0; i < common; i++) {
      if (compareDigests(digests?.get(i), tokens.digests?.get(offset + i)) !== 0) return i;
    }
    return common;
  }

  /** Whether a block stands before (< 0), at (0) or behind `count` tokens; a beginning stands before what it begins. */
  compareWith(block: BlockId, tokens: TokenBuffer, offset: number, count: number): number {
    const common = this.commonPrefix(block, tokens, offset, count);
    const length = this.numTokens[block];
    if (common === length || common === count) return length - count;
    const mine = this.tokenAt(block, common);
    const theirs = tokens.values[offset + common];
    if (mine !== theirs) return mine < theirs ? -1 : 1;
    return compareDigests(this.digests(block)?.get(common), tokens.digests?.get(offset + common));
  }

  /** The same order between two blocks. */
  compare(block: BlockId, other: BlockId): number {
    const tokens = this.#tokens;
    const base = this.#tokensBegin(block);
    const otherBase = this.#tokensBegin(other);
    const length = this.numTokens[block];
    const otherLength = this.numTokens[other];
    const end = Math.min(length, otherLength);
    const digests = this.digests(block);
    const otherDigests = this.digests(other);
    for (let i = 0; i < end; i++) {
      const mine = tokens[base + i];
      const theirs = tokens[otherBase + i];
      if (mine !== theirs) return mine < theirs ? -1 : 1;
      if (digests === undefined && otherDigests === undefined) continue;
      const order = compareDigests(digests?.get(i), otherDigests?.get(i));
      if (order !== 0) return order;
    }
    return length - otherLength;
  }

  #tokensBegin(block: BlockId): number {
    return (block >> this.#logFields) * this.tokensPerBlock;
  }

  #nextId(): BlockId {
    if (this.#size === this.numRows) this.#grow(grownLength(this.#size, this.#size + 1, this.expectedSize));
    const block = this.#size++ << this.#logFields;
    this.parent[block] = NONE;
    this.childRoot[block] = NONE;
    this.above[block] = NONE;
    this.lower[block] = NONE;
    this.higher[block] = NONE;
    this.nextSibling[block] = NONE;
    this.previousSibling[block] = NONE;
    for (let lifecycle = 0; lifecycle < this.numLifecycles; lifecycle++) this.setFirstPage(block, lifecycle, NONE);
    return block;
  }

  #storeTokens(block: BlockId, tokens: TokenBuffer, offset: number, count: number): void {
    const { values } = tokens;
    const base = this.#tokensBegin(block);
    const mine = this.#tokens;
    // By hand: a view for every block would be garbage.
    for (let i = 0; i < count; i++) mine[base + i] = values[offset + i];
    if (tokens.digests === null) return;
    for (let i = 0; i < count; i++) {
      const digest = tokens.digests.get(offset + i);
      if (digest === undefined) continue;
      const own = this.#digests.get(block) ?? new Map<number, MultimodalDigest>();
      this.#digests.set(block, own.set(i, digest));
    }
  }

  #grow(blocks: number): void {
    this.#setRecords(grownColumn(this.#records, blocks << this.#logFields));
    this.#tokens = grownColumn(this.#tokens, blocks * this.tokensPerBlock);
  }

  #setRecords(records: Int32Array): void {
    this.#records = records;
    let field = 0;
    const next = () => records.subarray(field++);
    this.parent = next();
    this.childRoot = next();
    this.nextSibling = next();
    this.previousSibling = next();
    this.generation = new Uint32Array(records.buffer).subarray(field++);
    this.numPages = next();
    this.pathHash = next();
    this.ordinal = next();
    this.numTokens = next();
    this.#indexed = next();
    this.above = next();
    this.lower = next();
    this.higher = next();
    this.hash = next();
    this.#firstPage = next();
  }
}
