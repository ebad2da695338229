/** What identifies a block besides its tokens: a LoRA's name, `[content id, offset in the block]`, or a salt. */
export type VllmExtraKey = string | readonly [string, number];

/** vLLM's event for consecutive blocks that can be reused. Hashes are whole numbers of 64 bits, with or without sign. */
export interface VllmBlockStored {
  readonly type: 'BlockStored';
  readonly blockHashes: readonly bigint[];
  /** Hash of the block before the first; null when there is none. */
  readonly parentBlockHash: bigint | null;
  /** Tokens of all blocks, `blockSize` of each. */
  readonly tokenIds: readonly number[];
  readonly blockSize: number;
  readonly loraId: number | null;
  /** `GPU`, `CPU` or `STORAGE`. */
  readonly medium: string | null;
  readonly loraName: string | null;
  /** One entry for each block. */
  readonly extraKeys?: readonly (readonly VllmExtraKey[] | null)[];
  readonly groupIndex?: number;
  /** `full_attention`, `sliding_window`, `mamba`, … */
  readonly specKind?: string;
  readonly slidingWindow?: number;
  /** `LOCAL` or `REMOTE`. */
  readonly locality?: string;
}

/** vLLM's event for blocks that are gone from a medium. */
export interface VllmBlockRemoved {
  readonly type: 'BlockRemoved';
  readonly blockHashes: readonly bigint[];
  readonly medium: string | null;
  readonly groupIndex?: number;
  readonly locality?: string;
}

/** vLLM's event for a cache that forgot everything. */
export interface VllmAllBlocksCleared {
  readonly type: 'AllBlocksCleared';
}

export type VllmEvent = VllmBlockStored | VllmBlockRemoved | VllmAllBlocksCleared;
