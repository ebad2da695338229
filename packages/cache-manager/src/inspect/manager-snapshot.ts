import type { ReusePolicy } from '@bufferwise/core-policy';

/**
 * Everything a manager holds at one moment, as plain data that survives JSON: for tools, tests and pictures. Ids of pages and blocks
 * are used again once their owner is gone; within one snapshot they are unique. Nothing in it is shared with the manager.
 */
export interface ManagerSnapshot {
  readonly tokensPerBlock: number;
  /** Index = group id. */
  readonly groups: readonly GroupSnapshot[];
  /** Pool groups of the device. */
  readonly poolGroups: readonly PoolGroupSnapshot[];
  /** The tiers behind the device, warm to cold: tier 1 first. */
  readonly colderTiers: readonly ColderTierSnapshot[];
  /** In the order of their ids. */
  readonly pages: readonly PageSnapshot[];
  /** The published blocks, scope by scope. */
  readonly tree: readonly ScopeSnapshot[];
  /** In the order in which they were opened. */
  readonly requests: readonly RequestSnapshot[];
  /** What the limits of the call left out. */
  readonly omitted: { readonly blocks: number; readonly pages: number };
}

export interface GroupSnapshot {
  readonly groupId: number;
  readonly kind: 'attention' | 'ssm';
  readonly policy: ReusePolicy;
  /** Tokens; null for attention that sees everything, and for state. */
  readonly windowSize: number | null;
  readonly numSinkBlocks: number;
  readonly poolGroup: number;
}

/**
 * `free`: nobody has it, or a move under way does. `locked`: a page of an active request. `held`: a page of suspended requests only. `droppable`: a published page that
 * nobody holds. `scratch`: lent to the present step of a request.
 */
export type SlotState = 'free' | 'locked' | 'held' | 'droppable' | 'scratch';

export interface SlotSnapshot {
  readonly state: SlotState;
  /** Id of the page in it; null when it is free or scratch. */
  readonly page: number | null;
}

export interface ColderTierSnapshot {
  readonly tier: 'device' | 'host' | 'disk';
  /** Index as in `layout.coldPoolGroups`. */
  readonly poolGroups: readonly PoolGroupSnapshot[];
}

export interface PoolGroupSnapshot {
  /** Bytes of one slot over all pools. */
  readonly slotBytes: number;
  readonly numSlots: number;
  readonly numFree: number;
  /** Index = slot id; as many as the limit of pages allows. */
  readonly slots: readonly SlotSnapshot[];
  /**
   * Ids of the pages that may leave the tier, in the order in which they would: droppable ones, and held ones where there is a
   * colder tier; as many as the limit of pages allows.
   */
  readonly queue: readonly number[];
}

export interface PageSnapshot {
  readonly id: number;
  readonly groupId: number;
  /** 0 = device. */
  readonly tier: number;
  /** Of its pool group in that tier. */
  readonly slot: number;
  /** Id of the block that lists it, null for a page of its owners alone. */
  readonly block: number | null;
  /** Tokens of the block for which it is good (attention), or after which the state was taken (SSM); 0 without a block. */
  readonly coverage: number;
  /** How often it is held: once by each owner, for each beam that does not share the block. */
  readonly holds: number;
  /** 0 … 100, lower is evicted first. */
  readonly priority: number;
  /** Keys of the requests that hold it. */
  readonly owners: readonly number[];
}

export interface ScopeSnapshot {
  /** Unsigned 64-bit integers in decimal; null for none. */
  readonly loraId: string | null;
  readonly salt: string | null;
  /** Ids of the blocks that begin a sequence. */
  readonly children: readonly number[];
  /** Each block before its children, children in the order of their tokens. */
  readonly blocks: readonly BlockSnapshot[];
}

export interface BlockSnapshot {
  readonly id: number;
  /** Id of the block before; null at the beginning of a sequence. */
  readonly parent: number | null;
  readonly ordinal: number;
  readonly numTokens: number;
  /** Token ids, and digests as 64 hexadecimal digits. Empty when tokens were not asked for. */
  readonly tokens: readonly (number | string)[];
  /** Ids of its pages, group by group. */
  readonly pages: readonly number[];
  /** Ids of the blocks behind; some may be left out of `blocks`. */
  readonly children: readonly number[];
}

export interface RequestSnapshot {
  /** The manager's number of the request, unique and never used again. */
  readonly key: number;
  /** The caller's name for it. */
  readonly id: number | null;
  readonly status: 'suspended' | 'active';
  readonly loraId: string | null;
  readonly salt: string | null;
  readonly numCommittedTokens: number;
  readonly historyLength: number;
  readonly capacity: number;
  readonly beamWidth: number;
  /** Index = group id. */
  readonly groups: readonly RequestGroupSnapshot[];
}

export interface RequestGroupSnapshot {
  readonly groupId: number;
  /** Blocks, from the first on, that all beams share. */
  readonly numSharedBlocks: number;
  readonly beams: readonly BeamSnapshot[];
  readonly scratch: { readonly begin: number; readonly end: number; readonly slots: readonly number[] } | null;
}

export interface BeamSnapshot {
  /** Id of the page of each block, null where there is none. Empty for a group of recurrent state. */
  readonly pages: readonly (number | null)[];
  /** Id of the page of recurrent state; null for attention, and before the first resume where nothing was claimed. */
  readonly state: number | null;
}

/** What a snapshot may cost. */
export interface InspectOptions {
  /** Blocks of the tree at most, over all scopes. Default 10,000. */
  maxBlocks?: number;
  /** Pages at most, and slots and queue entries of each pool group. Default 20,000. */
  maxPages?: number;
  /** Whether blocks show their tokens. Default true. */
  tokens?: boolean;
}
