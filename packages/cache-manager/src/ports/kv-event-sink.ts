import type { LayerGroupId, Lifecycle, TierConfig } from '@bufferwise/core-policy';
import type { BlockKey } from '../tree/block-key.ts';
import type { ScopeIds } from '../tree/reuse-scope.ts';
import type { TokenSeq } from '../tree/token-seq.ts';

/** What kind of memory a copy of a page is in. Several tiers may be of one medium. */
export type Medium = TierConfig['tier'];

interface GroupEvent {
  /** 0, 1, 2, … over all events of a manager. */
  readonly id: number;
  readonly groupId: LayerGroupId;
}

/** Pages of a group are going to come and go. Once a group, before everything else. */
export interface CreatedEvent extends GroupEvent {
  readonly type: 'created';
  readonly lifecycle: Lifecycle;
  /** Slots of the pool group that the group's pages share with others of equal size; index = tier. */
  readonly slotsPerTier: readonly number[];
}

/** One block of a stored run. */
export interface StoredBlock {
  readonly key: BlockKey;
  /** The block's tokens: a `Uint32Array`, or a list when there are digests among them. */
  readonly tokens: TokenSeq;
  /** Eviction priority of the page, 0 … 100; lower leaves first. */
  readonly priority: number;
}

/** Pages of consecutive blocks can be reused from now on: each block is the child of the one before. */
export interface StoredEvent extends GroupEvent {
  readonly type: 'stored';
  readonly lifecycle: Lifecycle;
  /** Tier the pages are in; the medium is its kind. */
  readonly tier: number;
  readonly medium: Medium;
  readonly scope: ScopeIds;
  /** Key of the block before the first; null when that is the first of its scope. */
  readonly parentKey: BlockKey | null;
  readonly blocks: readonly StoredBlock[];
}

/** Pages are gone from a medium: no copy of them is left there. */
export interface RemovedEvent extends GroupEvent {
  readonly type: 'removed';
  readonly tier: number;
  readonly medium: Medium;
  readonly keys: readonly BlockKey[];
}

/** The page of a block moved to another tier. Tells the block again, for whoever follows one medium only. */
export interface UpdatedEvent extends GroupEvent {
  readonly type: 'updated';
  readonly lifecycle: Lifecycle;
  readonly tier: { readonly from: number; readonly to: number };
  readonly medium: { readonly from: Medium; readonly to: Medium };
  readonly scope: ScopeIds;
  readonly parentKey: BlockKey | null;
  readonly block: StoredBlock;
}

/** Nothing is stored any more, in any group and tier: everything was forgotten, or the manager was closed. */
export interface ClearedEvent {
  readonly id: number;
  readonly type: 'cleared';
}

/** What happened to pages that others may reuse. Private groups never show in events. */
export type KvEvent = CreatedEvent | StoredEvent | RemovedEvent | UpdatedEvent | ClearedEvent;

/**
 * The port through which a manager tells what can be reused: to routers, tools and tests.
 *
 * A block is announced in a group and a medium when a page that covers all of it is there, once, and taken back once, when
 * the last copy in that medium is gone. What is announced again was taken back before.
 */
export interface KvEventSink {
  /**
   * Whether partial blocks are told, too: those with fewer tokens than a page has room for, at the end of a text. Default
   * false: they change with every turn, and routers know whole blocks only.
   */
  readonly partialBlocks?: boolean;
  /**
   * Takes the events of one call to the manager, in order; never an empty list. Called at the end of that call, when its
   * work is done: be quick. The events are the sink's own. What it throws is counted in `statistics()` and goes no further.
   */
  push(events: readonly KvEvent[]): void;
}
