import type { CacheConfig, Lifecycle, LifecycleRegistry } from '@bufferwise/core-policy';
import { StateError } from '@bufferwise/core-policy';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import { ColumnPool } from './column-pool.ts';
import type { EventRecorder } from './events/event-recorder.ts';
import { MAX_PRIORITY } from './eviction/lru-queue.ts';
import type { PinTable } from './pin/pin-table.ts';
import { TierNeeds } from './rebalance/tier-needs.ts';
import type { GroupRules } from './request/group-rules.ts';
import { losePages } from './request/lose-pages.ts';
import type { Matcher } from './request/match.ts';
import type { PriorityFn } from './request/priority.ts';
import type { RequestState } from './request/request-state.ts';
import { ResizePlan } from './request/resize-plan.ts';
import { PeakGauge } from './statistics/pool-group-peaks.ts';
import { StatisticsRecorder } from './statistics/statistics-recorder.ts';
import { CommandBatch } from './storage/command-batch.ts';
import { Demand } from './storage/demand.ts';
import type { StorageManager } from './storage/storage-manager.ts';
import { Evictor } from './tiers/evictor.ts';
import { Offload } from './tiers/offload.ts';
import { TierTraffic } from './tiers/tier-traffic.ts';
import { Turns } from './tiers/turns.ts';
import type { RadixTree } from './tree/radix-tree.ts';

/** Everything one manager owns. Requests reach the manager through this; nothing outside the package sees it. */
export class ManagerState {
  readonly config: CacheConfig;
  readonly lifecycles: LifecycleRegistry;
  readonly layout: StorageLayout;
  readonly groups: readonly GroupRules[];
  readonly storage: StorageManager;
  readonly tree: RadixTree;
  readonly matcher: Matcher;
  /** Carries pages to colder tiers. */
  readonly offload: Offload;
  /** Chooses which. */
  readonly evictor: Evictor;
  /** What waits for several tiers, one at a time. */
  readonly turns = new Turns();
  /** What the step under way wants; every step resets it first. */
  readonly demand: Demand;
  /** What the resize under way does; every resize fills it anew. */
  readonly plan: ResizePlan;
  /** Copies and clears of the step under way; empty between steps. */
  readonly commands: CommandBatch;
  /** Requests that are not closed. */
  readonly open = new Set<RequestState>();
  /** Snapshots and tail copies that could not be made, for want of a slot or because the device refused, by group. */
  readonly missedSnapshots: Float64Array;
  /** Pages whose bytes were lost, with a device or in a colder tier, by group. */
  readonly lostPages: Float64Array;
  /** Why the device refused a copy that could be left out; null once somebody was told. */
  refusedCopy: { readonly error: unknown } | null = null;
  /** Tables of tokens. */
  readonly columns = new ColumnPool();
  readonly pins: PinTable;
  readonly recorder: StatisticsRecorder;
  /** Index = tier. */
  readonly peaks: readonly PeakGauge[];
  /** What each tier was short of; index = tier. */
  readonly needs: readonly TierNeeds[];
  /** Null when nobody listens. */
  readonly events: EventRecorder | null;
  closed = false;
  /** Verifies every invariant after every call; null unless somebody wants that. */
  debugCheck: (() => void) | null = null;
  #asking = false;
  #numRequests = 0;

  constructor(parts: {
    config: CacheConfig;
    lifecycles: LifecycleRegistry;
    layout: StorageLayout;
    groups: readonly GroupRules[];
    storage: StorageManager;
    tree: RadixTree;
    matcher: Matcher;
    pins: PinTable;
    events: EventRecorder | null;
    /** Bytes of each tier, as planned. */
    quotas: readonly number[];
  }) {
    this.config = parts.config;
    this.lifecycles = parts.lifecycles;
    this.layout = parts.layout;
    this.groups = parts.groups;
    this.storage = parts.storage;
    this.tree = parts.tree;
    this.matcher = parts.matcher;
    this.offload = new Offload(
      parts.storage,
      (pages) => losePages(this, pages),
      () => this.afterCall(),
    );
    this.evictor = new Evictor(parts.storage, this.offload);
    this.demand = new Demand(parts.storage, this.evictor);
    this.plan = new ResizePlan(parts.groups.length);
    this.missedSnapshots = new Float64Array(parts.groups.length);
    this.lostPages = new Float64Array(parts.groups.length);
    this.recorder = new StatisticsRecorder({
      groups: parts.groups,
      pages: parts.storage.pages,
      slotBytes: parts.storage.poolGroups.map(({ slotBytes }) => slotBytes),
      tokensPerBlock: parts.config.tokensPerBlock,
    });
    this.commands = new CommandBatch(parts.storage, parts.groups.length, (group, count) =>
      this.recorder.moved('copied', group, count),
    );
    this.peaks = parts.storage.tiers.map(({ groups }) => new PeakGauge(groups));
    this.pins = parts.pins;
    this.events = parts.events;
    this.needs = parts.storage.tiers.map(({ kind, groups }, tier) => {
      const slotSizes =
        tier === 0 ? parts.storage.poolGroups.map((group) => group.poolSlotBytes) : groups.map((group) => [group.slotBytes]);
      return new TierNeeds({ kind, groups, slotSizes, quota: parts.quotas[tier], passesDown: groups[0]?.passesDown ?? false });
    });
    const { storage, tree, events } = parts;
    parts.storage.traffic = new TierTraffic({ storage, recorder: this.recorder, events, needs: this.needs, blocks: tree.blocks });
  }

  /** Whether a caller's priority function is asked now. */
  get isAsking(): boolean {
    return this.#asking;
  }

  /** What follows every call that may have changed something: peaks are sampled, events go out. */
  afterCall(): void {
    for (const gauge of this.peaks) gauge.sample();
    for (const needs of this.needs) needs.sample();
    this.events?.flush();
  }

  /** A number for a new request. */
  takeRequestKey(): number {
    return this.#numRequests++;
  }

  /**
   * Asks a caller's priority function. Until it answers, every call that would change the manager is refused: it would
   * change what the call under way has counted.
   *
   * @throws {StateError} `invalid-priority` on an answer that is no priority; whatever the function throws
   */
  askPriority(ask: PriorityFn, ordinal: number, lifecycle: Lifecycle): number {
    this.#asking = true;
    let priority: number;
    try {
      priority = ask(ordinal, lifecycle);
    } finally {
      this.#asking = false;
    }
    if (Number.isInteger(priority) && priority >= 0 && priority <= MAX_PRIORITY) return priority;
    throw new StateError(
      'invalid-priority',
      `the priority function answered ${priority}; priorities are whole numbers from 0 to ${MAX_PRIORITY}`,
    );
  }

  /** @throws {StateError} `called-from-priority` while a priority function is asked */
  checkNotAsking(call: string): void {
    if (!this.#asking) return;
    throw new StateError(
      'called-from-priority',
      `${call}: called from a priority function; it may look at the manager, but not change it`,
    );
  }
}
