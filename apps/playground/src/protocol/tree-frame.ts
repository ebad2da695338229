/** The published blocks: columns with an entry for each block, each block before its children. */
export interface TreeFrame {
  readonly numBlocks: number;
  readonly block: Int32Array;
  /** Position of the block before, -1 at the beginning of a sequence. */
  readonly parent: Int32Array;
  readonly ordinal: Uint32Array;
  readonly numTokens: Uint16Array;
  /** Groups that have a page of the block, as bits. */
  readonly groups: Uint32Array;
  /** What the block's tokens say. */
  readonly texts: readonly string[];
  /** Blocks that were left out for their number. */
  readonly omitted: number;
}
