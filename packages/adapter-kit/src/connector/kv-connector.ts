import type { BlockKey, ReuseScope, TokenSeq } from '@bufferwise/cache-manager';
import type { LayerGroupId, Lifecycle } from '@bufferwise/core-policy';
import type { CallOptions, Plugin } from '../plugin.ts';

/** What of the optional parts a connector does. */
export interface KvConnectorSupports {
  /** Loads may go on while the request waits: `lookup` may answer `async: true`. Else they are done when `waitForLayer` settles. */
  readonly asyncLoad: boolean;
  /** Saves may go on when a request has finished: `requestFinished` may answer `delayFree: true`. */
  readonly asyncSave: boolean;
  /** It keeps recurrent state, at the ends of blocks. */
  readonly snapshots: boolean;
  /** It tells of what it stores and drops: `takeEvents`. */
  readonly events: boolean;
}

/** How the numbers of a buffer lie in a page, little endian. */
export interface PageNumbers {
  readonly type: 'f32' | 'f16' | 'int8';
  /** Numbers of equal size that belong together, such as one head's vector of one token, at least 1. A buffer is whole rows, one behind the other. */
  readonly rowLength: number;
}

/** One buffer in the bytes of a page. */
export interface PageBuffer {
  readonly layerId: number;
  readonly role: string;
  /** Bytes from the start of the page. */
  readonly offset: number;
  readonly bytes: number;
  /** Pages of the buffer's own length that lie in it, one behind the other, at least 1. Default 1. */
  readonly pagesPerBlock?: number;
  /** Absent where nobody said. */
  readonly numbers?: PageNumbers;
}

/** One group of buffers that is offered: only what may be published is. Bytes of a page: all buffers of the group, one behind the other. */
export interface ConnectorGroup {
  readonly groupId: LayerGroupId;
  readonly lifecycle: Lifecycle;
  /** Layers with a buffer in the group, in the order in which a model runs through them. */
  readonly layerIds: readonly number[];
  readonly pageBytes: number;
  /**
   * What lies where in a page, in order; absent where there is one way only. Part of the names of pages: pages of equal bytes whose buffers lie in
   * another order are other pages.
   */
  readonly buffers?: readonly PageBuffer[];
}

/** What a connector must know before the first request. */
export interface ConnectorLayout {
  /** Whose pages these are: weights, precision, everything that decides what is in a page. Other than empty. */
  readonly modelFingerprint: string;
  readonly tokensPerBlock: number;
  /** Required and optional groups. Private ones are offered to no connector. */
  readonly groups: readonly ConnectorGroup[];
}

/** The memory that pages are loaded into and saved from. */
export interface ConnectorMemory {
  /** The bytes of some pages of a group, as they are when everything recorded so far is done. */
  readPages(groupId: LayerGroupId, slots: readonly number[]): Promise<readonly Uint8Array[]>;
  /** Overwrites pages. `pages` are read before the call returns. */
  writePages(groupId: LayerGroupId, slots: readonly number[], pages: readonly Uint8Array[]): void;
}

/** A request as a connector sees it. */
export interface ConnectorRequest {
  readonly id: number;
  readonly tokens: TokenSeq;
  readonly scope?: ReuseScope;
}

/**
 * Slots of a request's blocks, by group: index = group id. Attention: a slot for each block, -1 where the request holds none, so that
 * positions keep their meaning. Recurrent state: one entry, its slot, or -1. Private groups are undefined.
 */
export type BlocksByGroup = readonly (readonly number[] | undefined)[];

/** How far a prompt can be loaded. */
export type Lookup =
  /** Nobody knows yet: ask again in the next step. */
  | { readonly state: 'pending' }
  /**
   * So many tokens beyond those that are there, whole blocks, with all that required groups need to continue at their end. `async`: the
   * request waits until `finished` names it. Never with 0 tokens. `groups` are those that can be loaded: all required ones, and optional
   * ones that have all they need; none with 0 tokens.
   */
  | { readonly state: 'known'; readonly tokens: number; readonly async: boolean; readonly groups: readonly LayerGroupId[] };

/** What happens to the pages of a request that is done. */
export interface FinishAnswer {
  /** Its pages stay as they are until `finished().saved` names the request. */
  readonly delayFree: boolean;
  /** For whoever asked for the request, to hand on: plain data. */
  readonly params?: unknown;
}

/** What the scheduler's side tells the worker's in a step: plain data that survives `structuredClone`. Only connectors look into it. */
export type StepOrders = unknown;

/** What a worker reports after a step. Plain data. */
export interface StepReport {
  readonly finished: FinishedTransfers;
  readonly failedPages: readonly FailedPage[];
}

export interface FinishedTransfers {
  /** Requests whose delayed pages are saved, or will never be: they may be given back. Each once. */
  readonly saved: readonly number[];
  /** Requests whose asynchronous load has ended, also when pages failed. Each once. */
  readonly loaded: readonly number[];
}

/** Blocks of a group that are in the store from now on, or are not any more. */
export interface ConnectorEvent {
  readonly type: 'stored' | 'removed';
  readonly groupId: LayerGroupId;
  readonly keys: readonly BlockKey[];
}

/** A page that was to be loaded and was not. Its bytes are nobody's: it must not be read. */
export interface FailedPage {
  readonly groupId: LayerGroupId;
  readonly slot: number;
}

/**
 * The side that decides. Called in this order for a request: `onNewRequest`, `lookup` as often as it takes, `allocated`, once more
 * after an asynchronous load, and `requestFinished` exactly once. After a preemption it begins again with `lookup`.
 */
export interface ConnectorScheduler {
  /** A request has come. Cheap; a look at the store may begin. */
  onNewRequest(request: ConnectorRequest): void;
  /**
   * How many tokens can be loaded beyond the `computedTokens` that are there. May be asked often: it promises nothing and holds nothing. Throws
   * {AdapterError} `unknown-request`.
   */
  lookup(id: number, computedTokens: number): Lookup;
  /**
   * Pages are there for the tokens of the lookup. `externalTokens` above 0: they are to be loaded; 0, as in the second call after an
   * asynchronous load: nothing is.
   */
  allocated(id: number, blocks: BlocksByGroup, computedTokens: number, externalTokens: number): void;
  /** So many tokens of a request will be written when the step is done: full blocks of them may be saved. */
  willWrite(id: number, blocks: BlocksByGroup, writtenTokens: number): void;
  /** Everything that the worker is to do in this step. What was ordered is forgotten. */
  buildStep(): StepOrders;
  /** What the workers report of a step. */
  update(report: StepReport): void;
  /** A request is done, or gave up. Its pages are still there. Throws {AdapterError} `unknown-request`. */
  requestFinished(id: number, blocks: BlocksByGroup): FinishAnswer;
}

/**
 * The side that moves bytes, one for each device. Called in this order in a step: `beginStep`, `preempted`, `startLoad`, for each layer
 * `waitForLayer` before it reads and `saveLayer` after it wrote, `waitForSave`, `finished`, `failedPages`, `endStep`.
 */
export interface ConnectorWorker {
  beginStep(orders: StepOrders): void;
  /** Pages of these requests are about to be taken away: saves of them have read their bytes, or never will, when it settles. */
  preempted(ids: readonly number[]): Promise<void>;
  /** Begins the loads of the step. */
  startLoad(): void;
  /** Settles when the layer's pages of all loads that are not asynchronous are there, or have failed. */
  waitForLayer(layerId: number, options?: CallOptions): Promise<void>;
  /** The layer has written its pages of this step. */
  saveLayer(layerId: number): void;
  /** Settles when all saves of the step have read their bytes: the pages may be overwritten then, but for delayed ones. */
  waitForSave(options?: CallOptions): Promise<void>;
  /** What has ended since the last call. `announced` are requests that have finished. */
  finished(announced: readonly number[]): FinishedTransfers;
  /** Pages whose load has failed since the last call; told no later than the request is told as loaded. */
  failedPages(): readonly FailedPage[];
  endStep(): void;
}

/**
 * Decides what of a request is loaded from outside of the process, and what is saved there, and does it.
 *
 * A failed load yields no page to be read: it is reported, page by page, and costs time only. Nothing that a connector does makes a step
 * wait that did not need it. What it loads has the bytes that were saved under the same model, scope, tokens and group.
 */
export interface KvConnector extends Plugin<KvConnectorSupports> {
  readonly scheduler: ConnectorScheduler;
  readonly worker: ConnectorWorker;
  /** Called once, before everything else. Throws {AdapterError} `private-group` when a private group is among them. */
  register(layout: ConnectorLayout, memory: ConnectorMemory): void;
  /** Forgets what it stored for the model. False when it cannot. */
  resetCache(options?: CallOptions): Promise<boolean>;
  /** What it stored and dropped since the last call. */
  takeEvents(): readonly ConnectorEvent[];
  /** Ends what is under way; loads fail, saves are finished or given up. */
  close(): Promise<void>;
}
