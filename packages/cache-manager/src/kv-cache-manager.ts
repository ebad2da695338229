import {
  type BufferId,
  type CacheConfig,
  defineCacheConfig,
  type LayerGroupId,
  LifecycleRegistry,
  StateError,
} from '@bufferwise/core-policy';
import { clampMaxSequenceLength, planSlots, StorageLayout } from '@bufferwise/scratch-allocator';
import { NONE } from './columns.ts';
import { DISPOSE } from './dispose.ts';
import { EventRecorder } from './events/event-recorder.ts';
import { EvictionView } from './eviction/eviction-view.ts';
import { createPolicy, DEFAULT_EVICTION, type EvictionChoice } from './eviction/policies.ts';
import type { InspectOptions, ManagerSnapshot } from './inspect/manager-snapshot.ts';
import { takeSnapshot } from './inspect/take-snapshot.ts';
import { KvCache } from './kv-cache.ts';
import { ManagerState } from './manager-state.ts';
import { pinMatch } from './pin/pin-prefix.ts';
import { PinTable } from './pin/pin-table.ts';
import type { PinOptions, PrefixPin } from './pin/prefix-pin.ts';
import type { KvEventSink } from './ports/kv-event-sink.ts';
import type { PageDevice, PoolMemory } from './ports/page-device.ts';
import type { TierStore } from './ports/tier-store.ts';
import { noteShortMatch } from './rebalance/note-short-match.ts';
import { needsRebalance, type RebalancePlan, rebalance, rebalancePlan } from './rebalance/rebalance.ts';
import { claimMatch } from './request/claim.ts';
import { close as closeRequest } from './request/commit.ts';
import { type GroupRules, groupRules } from './request/group-rules.ts';
import { Matcher } from './request/match.ts';
import type { PriorityFn } from './request/priority.ts';
import { ANSWER_TOKENS, RequestState } from './request/request-state.ts';
import { Retention, type RetentionRange } from './request/retention.ts';
import type { PoolGroupPeaks } from './statistics/pool-group-peaks.ts';
import type { RequestStatistics } from './statistics/request-statistics.ts';
import {
  type CacheStatistics,
  cacheStatistics,
  type IterationStatistics,
  type PoolGroupStatistics,
  poolGroupStatistics,
} from './statistics/statistics.ts';
import { StorageManager } from './storage/storage-manager.ts';
import type { QueueFactory } from './storage/tier.ts';
import { checkState } from './testing/check-state.ts';
import { registerManager } from './testing/manager-registry.ts';
import type { ColdMemory } from './tiers/cold-memory.ts';
import { DiskMemory } from './tiers/disk-memory.ts';
import { HostMemory } from './tiers/host-memory.ts';
import { loseDevice, restoreDevice } from './tiers/lose-device.ts';
import { resizeTier } from './tiers/resize-tier.ts';
import { BlockKeyTable } from './tree/block-key-table.ts';
import { BlockTable } from './tree/block-table.ts';
import { RadixTree } from './tree/radix-tree.ts';
import { type ReuseScope, scopeKey } from './tree/reuse-scope.ts';
import { TokenBuffer, type TokenSeq } from './tree/token-seq.ts';

export interface KvCacheManagerOptions {
  config: CacheConfig;
  /** Where device pages live. The manager creates and destroys its pools there; the device itself stays the caller's. */
  device: PageDevice;
  /**
   * Keeps the pages of the config's disk tiers; needed when there is one. It belongs to this manager alone, which forgets what
   * it finds there at first. The caller closes it, after the manager.
   */
  disk?: TierStore;
  /**
   * Bytes that may be on their way to colder tiers at a time, besides what the tiers hold. When so many are, what nobody holds
   * is dropped instead of kept, and what somebody holds cannot make room. Default 64 MiB; never less than a page for each tier.
   */
  stagingBytes?: number;
  /** Told what becomes reusable and what ceases to be. */
  events?: KvEventSink;
  /** Verifies every invariant after every call. Slow; for tests. Default false. */
  debugChecks?: boolean;
  /**
   * Which of the pages that nobody holds leaves first, after priority: `cost-aware` (the default) weighs age, reuse, what a page
   * saves and what pages like it were good for; `lru` looks at age alone; a factory brings a policy of your own.
   */
  eviction?: EvictionChoice;
  /** Part of every pool, from 0 to 1, that `pin` may hold. Default 0.5. */
  maxPinnedShare?: number;
  /** The time in milliseconds, never falling: what `durationMs` is measured by. Default: `Date.now`. */
  now?: () => number;
}

export interface CreateKvCacheOptions {
  /** The prompt: the longest reusable prefix of it is claimed. Left out: nothing is looked up. */
  tokens?: TokenSeq;
  /** Namespace in which prefixes may match. Left out: the common one. */
  scope?: ReuseScope;
  /** The caller's name for the request. */
  id?: number;
  /** Eviction priority of the request's pages. Default 35 everywhere. */
  priority?: PriorityFn;
  /** Runs of tokens that are worth more, or less, than usual, perhaps for a time. Where a range says something, `priority` is not asked. */
  retention?: readonly RetentionRange[];
  /**
   * Tokens of the prompt: blocks that are added once so much is written count as generation, not as missed. Default: the length
   * of `tokens`; without these everything counts as prompt.
   */
  expectedPromptLength?: number;
  /**
   * The match ends where every optional group is complete, too, so that all of them can be selected: for whoever would have to compute the
   * whole prefix again without them. Default false.
   */
  requireOptional?: boolean;
}

/**
 * Owns the pages of one model on one device: opens requests, finds the prefix they can reuse, shares pages between them,
 * and evicts what nobody holds when room is needed.
 *
 * One manager lives on one thread. `resize` and `commit` are synchronous; only what waits for memory is not.
 */
export class KvCacheManager {
  readonly lifecycles: LifecycleRegistry;
  readonly layout: StorageLayout;
  readonly #state: ManagerState;
  /** Follows every call that may have changed something. */
  readonly #afterCall: () => void;

  /**
   * @throws {ConfigError} on a config that `defineCacheConfig` would refuse; {StateError} `no-disk-store` when it has a disk
   *   tier and there is no `disk`; whatever the device throws for memory it cannot serve
   */
  constructor(options: KvCacheManagerOptions) {
    const config = defineCacheConfig(options.config);
    this.lifecycles = LifecycleRegistry.fromConfig(config);
    this.layout = StorageLayout.fromConfig(config, this.lifecycles);
    const state = createState(config, this.lifecycles, this.layout, options);
    this.#state = state;
    if (options.debugChecks) state.debugCheck = () => checkState(state);
    this.#afterCall = () => {
      state.afterCall();
      state.debugCheck?.();
    };
    registerManager(this, state);
    state.events?.created(state.groups.map(({ id }) => slotsPerTier(state.storage, id)));
    state.afterCall();
    this.#watch(options.device);
  }

  /** The group of one buffer. Throws {UnknownBufferError} when the config has no such buffer. */
  getBufferGroupId(layerId: number, role: string): LayerGroupId {
    return this.lifecycles.getBufferGroupId(layerId, role);
  }

  /** The buffers of each group; index = group id. */
  get bufferGrouping(): readonly (readonly BufferId[])[] {
    return this.lifecycles.bufferGrouping;
  }

  /**
   * The memory of the pool that holds a buffer's pages, as the device made it: what consumers bind. Owned by the manager, and
   * another one after `resizeTier(0, …)` and `restoreDevice`: ask when a step is put together.
   *
   * @throws {UnknownBufferError} when the config has no such buffer, {StateError} `device-lost` while there is no device
   */
  poolMemory(layerId: number, role: string): PoolMemory {
    const { poolGroup, pool } = this.layout.bufferAttr(layerId, role);
    const memory = this.#state.storage.poolGroups[poolGroup].memories[pool];
    if (memory === undefined)
      throw new StateError('device-lost', 'poolMemory: the device was lost; give the manager another with restoreDevice first');
    return memory;
  }

  /** The longest sequence, in tokens up to `upperBound`, that one request can reach while it has the device to itself. */
  clampSequenceLength(upperBound: number): number {
    const slots = this.#state.storage.poolGroups.map((group) => group.slots.slots);
    const { commitMinSnapshot } = this.#state.config;
    return clampMaxSequenceLength(this.layout, { slots, batchSize: 1, upperBound, commitMinSnapshot, byToken: true });
  }

  /**
   * @deprecated A layer may be in several groups: ask `getBufferGroupId(layerId, role)`.
   * @throws {AmbiguousLayerError} when the layer's buffers are in several groups
   */
  getLayerGroupId(layerId: number): LayerGroupId {
    return this.lifecycles.getLayerGroupId(layerId);
  }

  /**
   * @deprecated A layer may be in several groups: use `bufferGrouping`.
   * @throws {AmbiguousLayerError} when any layer's buffers are in several groups
   */
  get layerGrouping(): readonly (readonly number[])[] {
    return this.lifecycles.layerGrouping;
  }

  /** Tokens of `tokens` that a request opened now could reuse. Advice only: nothing is held. */
  probeReuse(tokens: TokenSeq, scope?: ReuseScope): number {
    this.#checkOpen('probeReuse');
    return this.#state.matcher.match(this.#state.tree.root(scopeKey(scope)), TokenBuffer.borrow(tokens));
  }

  /**
   * Opens a request. It claims the longest reusable prefix of `tokens` and begins suspended; nothing is allocated.
   * Close it to give its pages back.
   *
   * @throws {TokenError} on anything that is no token, {StateError} on a bad scope or prompt length, or after `close`
   */
  createKvCache(options: CreateKvCacheOptions = {}): KvCache {
    this.#checkOpen('createKvCache');
    this.#state.checkNotAsking('createKvCache');
    const { matcher, tree, open } = this.#state;
    const scope = scopeKey(options.scope);
    const lookedUp = options.tokens?.length ?? null;
    const expectedPromptLength = checkedPromptLength(options.expectedPromptLength) ?? lookedUp ?? Number.POSITIVE_INFINITY;
    const prompt = TokenBuffer.borrow(options.tokens ?? []);
    const retention = options.retention?.length ? new Retention(options.retention, this.#state.config.tokensPerBlock) : null;
    const { requireOptional = false } = options;
    const matched = matcher.match(tree.root(scope), prompt, requireOptional);
    const request = new RequestState({
      manager: this.#state,
      id: options.id,
      scope,
      tokens: prompt.prefix(matched, lookedUp === null ? 0 : lookedUp + ANSWER_TOKENS, this.#state.columns),
      depths: matcher.depths,
      lookedUp,
      requireOptional,
      expectedPromptLength,
      priority: options.priority,
      retention,
    });
    claimMatch(request);
    if (!requireOptional) noteShortMatch(this.#state, lookedUp ?? 0, matched);
    open.add(request);
    this.#afterCall();
    return new KvCache(request, this.#afterCall);
  }

  /**
   * Keeps the longest published prefix of `tokens` from being evicted until the pin is released: what every group needs to continue
   * there. Pins may overlap. Without partial reuse, pin whole blocks: a partial one at the end may still give way to a longer one
   * with the same beginning.
   *
   * @returns null when all pins together would hold more than `maxPinnedShare` of some pool; nothing has changed then
   * @throws {TokenError} on anything that is no token; {StateError} on a bad scope or duration, or after `close`
   */
  pin(tokens: TokenSeq, scope?: ReuseScope, options: PinOptions = {}): PrefixPin | null {
    this.#checkOpen('pin');
    this.#state.checkNotAsking('pin');
    const { matcher, tree } = this.#state;
    const matched = matcher.match(tree.root(scopeKey(scope)), TokenBuffer.borrow(tokens));
    const pin = pinMatch(this.#state, matched, options, this.#afterCall);
    this.#afterCall();
    return pin;
  }

  /** Settles once the device is known to have the memory, or rejects with the reason. `resume` waits for it too. */
  ready(): Promise<void> {
    return this.#state.storage.ready();
  }

  /** Slots of every pool group of a tier; tier 0 is the device. Throws {StateError} on a tier that does not exist. */
  storageStatistics(tier: number): PoolGroupStatistics[] {
    this.#checkTier(tier);
    return poolGroupStatistics(this.#state, tier);
  }

  /**
   * Gives a tier another quota in bytes, rounded up to whole grains. Requests may be open, and active ones go on: where pages
   * had to be carried to other slots, their `basePageIndices` show the new ones when the promise has resolved. On the device
   * `poolMemory` answers anew, so no step may be half put together meanwhile.
   *
   * @returns false when the quota is too small for what must stay, or cannot be had. Nothing has changed then, except that
   *   pages which no active request uses may be in a colder tier
   * @throws {StateError} `unknown-tier`, `invalid-quota`, `device-lost`; whatever the device throws for pools it can never serve, or
   *   for copies into them
   */
  async resizeTier(tier: number, quota: number): Promise<boolean> {
    this.#checkOpen('resizeTier');
    this.#state.checkNotAsking('resizeTier');
    const resized = await resizeTier(this.#state, tier, quota);
    this.#afterCall();
    return resized;
  }

  /**
   * How the bytes of a tier would be divided anew among its pool groups, from what was evicted and asked for again, what lay idle
   * and what found no room since they last changed, and why. Changes nothing.
   *
   * @throws {StateError} `unknown-tier`, or after `close`
   */
  rebalancePlan(tier = 0): RebalancePlan {
    this.#checkOpen('rebalancePlan');
    return rebalancePlan(this.#state, tier);
  }

  /** Whether `rebalance` would move anything in some tier. */
  get needsRebalance(): boolean {
    return !this.#state.closed && needsRebalance(this.#state);
  }

  /**
   * Moves bytes from one pool group of a tier to another where `rebalancePlan` has such a move; call it now and then, when a pause
   * hurts least. As for `resizeTier`, requests may be open, and active ones go on; on the device all pages of the two groups are copied
   * to new pools, and `poolMemory` answers anew.
   *
   * @returns whether anything was moved. false: nothing is worth it, as far as was seen, or the device has no memory for the new
   *   pools beside the old ones; nothing has changed then
   */
  async rebalance(): Promise<boolean> {
    this.#checkOpen('rebalance');
    this.#state.checkNotAsking('rebalance');
    const moved = await rebalance(this.#state);
    this.#afterCall();
    return moved;
  }

  /**
   * To be called when the device is gone; a device whose `lost` resolves calls it by itself. Every request is suspended
   * afterwards. One that lost pages has begun again from what colder tiers hold of it: its lengths are those of the match,
   * `lostTokens` says how much is to be computed again, and its next `resume` rejects with {PagesLostError} once, then works as
   * the first one does. Until `restoreDevice` nothing can be resumed. Does nothing the second time.
   */
  deviceLost(): void {
    this.#checkOpen('deviceLost');
    this.#state.checkNotAsking('deviceLost');
    loseDevice(this.#state);
    this.#afterCall();
  }

  /**
   * Goes on with another device, with pools as large as before; `poolMemory` answers anew. Settles once it is known to have the
   * memory. Counts as `deviceLost` when that was not called before.
   *
   * @throws whatever the device throws for memory it cannot serve; there is no device then
   */
  async restoreDevice(device: PageDevice): Promise<void> {
    this.#checkOpen('restoreDevice');
    this.#state.checkNotAsking('restoreDevice');
    const restored = restoreDevice(this.#state, device);
    this.#watch(device);
    this.#afterCall();
    await restored;
  }

  /** Everything that is held now, as plain data. Changes nothing. Throws {StateError} after `close`. */
  inspect(options: InspectOptions = {}): ManagerSnapshot {
    this.#checkOpen('inspect');
    return takeSnapshot(this.#state, options);
  }

  /** What there is now, and what happened since the manager was made. */
  statistics(): CacheStatistics {
    return cacheStatistics(this.#state);
  }

  /** What each group did since the last call; groups that did nothing are left out. */
  takeIterationStatistics(): Map<LayerGroupId, IterationStatistics> {
    return this.#state.recorder.takeIteration();
  }

  /** What requests came to since the last call. */
  takeRequestStatistics(): RequestStatistics {
    return this.#state.recorder.takeRequests();
  }

  /**
   * The most slots that were available, unavailable and evictable since the last call, between any two calls of the manager; by
   * pool group. From now on they count from the present. Throws {StateError} on a tier that does not exist.
   */
  takePeakStatistics(tier: number): PoolGroupPeaks[] {
    this.#checkTier(tier);
    return this.#state.peaks[tier].take();
  }

  /** Forgets everything that was published. Throws {StateError} while requests are open or prefixes pinned; nothing is forgotten then. */
  clearReusableBlocks(): void {
    this.#checkOpen('clearReusableBlocks');
    this.#state.checkNotAsking('clearReusableBlocks');
    this.#checkNoRequests('clearReusableBlocks', 'close them first');
    this.#checkNoPins('clearReusableBlocks');
    this.#state.storage.dropAll();
    this.#state.events?.cleared();
    this.#afterCall();
  }

  /**
   * Resolves when everything ordered so far has ended: copies, moves between tiers, writes to the disk. Rejects, once, when the device refused the copies of a snapshot or tail: a
   * commit goes through without them, and `missedSnapshots` counts them.
   */
  async settled(): Promise<void> {
    const { storage, turns } = this.#state;
    await storage.ready();
    while (turns.any || storage.landings.any) {
      await turns.ended();
      await storage.landings.all();
    }
    for (const { memory } of storage.tiers) await memory?.settled();
    await storage.device?.landed();
    const refused = this.#state.refusedCopy;
    this.#state.refusedCopy = null;
    if (refused !== null) throw refused.error;
  }

  /**
   * Gives all memory back, and deletes what the disk tiers keep. Does nothing the second time.
   *
   * @param options.force closes open requests first
   * @throws {StateError} while requests are open and `force` is not set
   */
  async close(options: { force?: boolean } = {}): Promise<void> {
    if (this.#state.closed) return;
    this.#state.checkNotAsking('close');
    if (options.force) for (const request of [...this.#state.open]) closeRequest(request);
    this.#checkNoRequests('close', 'close them first, or pass { force: true }');
    this.#state.pins.releaseAll();
    this.#state.closed = true;
    this.#state.events?.cleared();
    this.#state.afterCall();
    const { storage } = this.#state;
    storage.destroy();
    for (const { memory } of storage.tiers) await memory?.close();
  }

  [DISPOSE](): void {
    void this.close({ force: true });
  }

  #checkTier(tier: number): void {
    const { tiers, lastTier } = this.#state.storage;
    if (tiers[tier] !== undefined) return;
    throw new StateError('unknown-tier', `there is no tier ${tier}; tiers run from 0, the device, to ${lastTier}`);
  }

  #watch(device: PageDevice): void {
    void device.lost?.then(() => {
      if (this.#state.storage.device !== device || this.#state.closed) return;
      loseDevice(this.#state);
      this.#afterCall();
    });
  }

  #checkOpen(call: string): void {
    if (this.#state.closed) throw new StateError('manager-closed', `${call}: the manager is closed`);
  }

  #checkNoPins(call: string): void {
    const { pins } = this.#state;
    pins.expire();
    if (pins.size > 0) throw new StateError('prefixes-pinned', `${call}: ${pins.size} prefixes are pinned; release them first`);
  }

  #checkNoRequests(call: string, wayOut: string): void {
    const count = this.#state.open.size;
    if (count > 0)
      throw new StateError('requests-open', `${call}: ${count} ${count === 1 ? 'request is' : 'requests are'} open; ${wayOut}`);
  }
}

function checkedPromptLength(length: number | undefined): number | undefined {
  if (length === undefined || (Number.isSafeInteger(length) && length >= 0)) return length;
  throw new StateError(
    'invalid-prompt-length',
    `createKvCache: expectedPromptLength is ${length}; it must be a whole number of tokens`,
  );
}

const STAGING_BYTES = 64 << 20;

function createState(
  config: CacheConfig,
  lifecycles: LifecycleRegistry,
  layout: StorageLayout,
  {
    device,
    disk,
    events: sink,
    stagingBytes = STAGING_BYTES,
    eviction = DEFAULT_EVICTION,
    maxPinnedShare,
    now = Date.now,
  }: KvCacheManagerOptions,
): ManagerState {
  const { tokensPerBlock, commitMinSnapshot, enablePartialReuse, reuseMatchBackoff } = config;
  const groups = groupRules({
    lifecycles,
    poolGroupOf: (id) => layout.poolGroupOf(id),
    tokensPerBlock,
    minSnapshot: commitMinSnapshot,
  });
  const plans = planSlots(layout, config);
  const memories = coldMemories(config, layout, disk);
  const blocks = new BlockTable(tokensPerBlock, groups.length);
  const createQueue: QueueFactory = (pages, home) => createPolicy(eviction, new EvictionView({ home, pages, blocks, groups }));
  const storage = new StorageManager({ layout, groups, plans, device, memories, stagingBytes, createQueue, now });
  const tree = new RadixTree({
    tokensPerBlock,
    groups,
    pages: storage.pages,
    blocks,
    freed: (page) => storage.freed(page),
    replaced: (page, by) => pins.replace(page, by),
    becameLeaf: (block) => {
      for (let group = 0; group < groups.length; group++) {
        const page = blocks.firstPage(block, group);
        if (page !== NONE && groups[group].kind === 'attention') storage.becameLeaf(page);
      }
    },
  });
  storage.onEvict((page) => tree.remove(page));
  storage.onDrop((page) => tree.pagesBehind(page));
  const pins = new PinTable({ storage, groups, share: maxPinnedShare, now });
  storage.onExpire(() => pins.expire());
  const numPages = plans.reduce((sum, { slots }) => slots.reduce((all, count) => all + count, sum), 0);
  storage.pages.expectedSize = numPages;
  // Every block lists a page, but for the roots and few others.
  blocks.expectedSize = numPages + (numPages >> 6) + 64;
  const matcher = new Matcher({ tree, groups, tokensPerBlock, partialReuse: enablePartialReuse, backoff: reuseMatchBackoff });
  const events = sink === undefined ? null : createRecorder(sink, config, groups, storage, tree);
  const quotas = plans.map(({ quota }) => quota);
  return new ManagerState({ config, lifecycles, layout, groups, storage, tree, matcher, pins, events, quotas });
}

function createRecorder(
  sink: KvEventSink,
  config: CacheConfig,
  groups: readonly GroupRules[],
  storage: StorageManager,
  tree: RadixTree,
): EventRecorder {
  const keys = new BlockKeyTable(tree.blocks, (root) => tree.scopeOf(root));
  const recorder = new EventRecorder({
    sink,
    tree,
    pages: storage.pages,
    groups,
    keys,
    media: config.tiers.map(({ tier }) => tier),
  });
  tree.listener = recorder;
  return recorder;
}

function coldMemories(config: CacheConfig, layout: StorageLayout, disk: TierStore | undefined): (ColdMemory | null)[] {
  const slotBytes = layout.coldPoolGroups.map((group) => group.slotBytes);
  return config.tiers.map(({ tier }, index) => {
    if (tier === 'device') return null;
    if (tier === 'host') return new HostMemory(slotBytes);
    if (disk !== undefined) return new DiskMemory(disk, `tier${index}`, slotBytes);
    throw new StateError(
      'no-disk-store',
      `tiers[${index}] is a disk tier, but there is nothing to keep its pages: pass a TierStore as \`disk\``,
    );
  });
}

function slotsPerTier(storage: StorageManager, group: number): number[] {
  return storage.tiers.map(({ groups }, tier) => groups[storage.groupIn(tier, group)].slots.slots);
}
