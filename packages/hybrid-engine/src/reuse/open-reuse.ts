import { type ReplayPlan, reusedGroups } from '@bufferwise/adapter-kit';
import type { GroupReuseStatus, KvCache, KvCacheManager, ReuseScope } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';
import { CatchUp } from './catch-up.ts';
import { catchUpStart, type LayerHistory } from './catch-up-start.ts';

/** What a request brings when it is opened. */
export interface OpenRequest {
  /** What may be reused: all that is known but the last token. */
  readonly tokens: Uint32Array;
  /** The caller's name for it. */
  readonly id?: number;
  readonly lookup: boolean;
  readonly publish: boolean;
  readonly scope?: ReuseScope;
  readonly expectedPromptLength: number;
}

/** What of the model decides how much has to be computed again. */
export interface ReuseModel {
  /** As consumers of the model plan it, all together. */
  planReplay(reuseStatus: readonly GroupReuseStatus[], matched: number): ReplayPlan;
  /** What each layer lacks, bottom layer first, when a request at `matched` holds all groups but the `missing` ones. */
  layerHistories(matched: number, missing: ReadonlySet<LayerGroupId>): readonly LayerHistory[];
}

/** How the groups of a new request are begun: by pages of others, or by computing again what nobody has. */
export class ReuseOpener {
  readonly #manager: KvCacheManager;
  readonly #model: ReuseModel;
  readonly #copyPages: CopyPages;

  constructor(manager: KvCacheManager, model: ReuseModel, copyPages: CopyPages) {
    this.#manager = manager;
    this.#model = model;
    this.#copyPages = copyPages;
  }

  /**
   * Looks a request up, and decides at how many tokens it continues, with which optional groups, and what a second run has to fill.
   * Of all ways that give the same tokens as no reuse it takes the one that computes least. Nothing is allocated.
   */
  open(request: OpenRequest): OpenedReuse {
    const cache = this.#create(request, request.lookup ? request.tokens : undefined);
    const direct = this.#opened(request, cache);
    if (direct.missing.size === 0) return direct;
    // Two ways to have what is missing: to continue earlier, where nothing is, or to run a second time up to the match.
    const complete = this.#opened(request, this.#create(request, request.tokens, { requireOptional: true }));
    const second = this.#secondRun(request, direct);
    const from = complete.missing.size === 0 ? complete.matched : 0;
    if (second !== null && second.from > from) {
      complete.close();
      direct.catchUp = second;
      return direct;
    }
    second?.close();
    direct.close();
    if (complete.missing.size === 0) return complete;
    complete.close();
    return this.#opened(request, this.#create(request, undefined));
  }

  #create(request: OpenRequest, tokens: Uint32Array | undefined, options: { requireOptional?: boolean } = {}): KvCache {
    const { id, scope, expectedPromptLength } = request;
    return this.#manager.createKvCache({ id, tokens, scope, expectedPromptLength, ...options });
  }

  #opened(request: OpenRequest, cache: KvCache): OpenedReuse {
    const matched = cache.numCommittedTokens;
    const plan = this.#model.planReplay(cache.reuseStatus, matched);
    return new OpenedReuse(cache, plan, this.#missing(cache.reuseStatus, matched, plan), request.publish);
  }

  /** Groups whose past the request needs and does not have. */
  #missing(status: readonly GroupReuseStatus[], matched: number, plan: ReplayPlan): ReadonlySet<LayerGroupId> {
    if (plan.from === matched) return new Set();
    const lacking = status.filter(({ groupId, policy }) => policy !== 'required' && !plan.optionalReuseGroups.includes(groupId));
    const needing = lacking.filter((group) => this.#model.planReplay([group], matched).from < matched);
    return new Set(needing.map(({ groupId }) => groupId));
  }

  /** The run that fills what `direct` lacks, if there is a point of the prefix from which it can. */
  #secondRun(request: OpenRequest, direct: OpenedReuse): CatchUp | null {
    const layers = this.#model.layerHistories(direct.matched, direct.missing);
    const latest = catchUpStart(layers, direct.matched);
    if (latest === 0) return null;
    const tokens = request.tokens.subarray(0, latest);
    const whole = new Set([...direct.reused].filter((groupId) => this.#isFullAttention(groupId)));
    // Optional groups of the run have to be complete where it begins, but for those that it is there to fill, or reads in the match.
    for (const requireOptional of [false, true]) {
      const cache = this.#create(request, tokens, { requireOptional });
      const from = cache.numCommittedTokens;
      const plan = this.#model.planReplay(cache.reuseStatus, from);
      const missing = [...this.#missing(cache.reuseStatus, from, plan)];
      if (from > 0 && missing.every((groupId) => whole.has(groupId) || this.#mayBegin(groupId, direct.missing))) {
        const { optionalReuseGroups } = plan;
        return new CatchUp({ cache, target: direct, optionalReuseGroups, whole, copyPages: this.#copyPages });
      }
      cache.close();
    }
    return null;
  }

  /** Whether a second run may begin without a group: one that it fills from there on. Optional state it has to begin with. */
  #mayBegin(groupId: LayerGroupId, filled: ReadonlySet<LayerGroupId>): boolean {
    const { kind, policy } = this.#manager.lifecycles.get(groupId);
    return filled.has(groupId) && !(kind === 'ssm' && policy === 'optional');
  }

  #isFullAttention(groupId: LayerGroupId): boolean {
    const lifecycle = this.#manager.lifecycles.get(groupId);
    return lifecycle.kind === 'attention' && lifecycle.windowSize === null;
  }
}

/** Copies the pages of groups from one request to another at the same history, behind everything that was submitted. */
export type CopyPages = (from: KvCache, to: KvCache, groups: ReadonlySet<LayerGroupId>) => void;

/** A request that was looked up, and perhaps a second run beside it. Holds pages until `close`. */
export class OpenedReuse {
  readonly cache: KvCache;
  readonly plan: ReplayPlan;
  /** Tokens at which it continues. */
  readonly matched: number;
  /** Groups that a second run has to fill. */
  readonly missing: ReadonlySet<LayerGroupId>;
  /** Groups that it began with pages of others in. */
  readonly reused: ReadonlySet<LayerGroupId>;
  /** The second run; null when there is none, or when it is done. */
  catchUp: CatchUp | null = null;
  readonly #publish: boolean;
  #begun = false;

  constructor(
    cache: KvCache,
    plan: ReplayPlan,
    missing: ReadonlySet<LayerGroupId>,
    publish: boolean,
    matched = cache.numCommittedTokens,
  ) {
    this.cache = cache;
    this.plan = plan;
    this.matched = matched;
    this.missing = missing;
    this.reused = reusedGroups(cache.reuseStatus, plan, this.matched);
    this.#publish = publish;
  }

  /** A fork of an opened request: it is on the device, with pages for all it has. */
  static forkOf(source: OpenedReuse, cache: KvCache): OpenedReuse {
    const forked = new OpenedReuse(cache, source.plan, source.missing, source.#publish);
    forked.#begun = true;
    return forked;
  }

  /** A request that was filled from outside up to its history: it is on the device, and lacks nothing. */
  static arrived(cache: KvCache, publish: boolean): OpenedReuse {
    const { historyLength } = cache;
    const plan = { optionalReuseGroups: [], rebuiltGroups: [], from: historyLength };
    const arrived = new OpenedReuse(cache, plan, new Set(), publish, historyLength);
    arrived.#begun = true;
    return arrived;
  }

  /**
   * Takes it onto the device, the second run too.
   *
   * @returns false when there is no room; it holds what it held, and nothing more
   * @throws {PagesLostError} when pages were lost while it was suspended
   */
  async resume(): Promise<boolean> {
    const { cache, catchUp } = this;
    const { optionalReuseGroups, rebuiltGroups } = this.plan;
    if (!(await cache.resume(this.#begun ? {} : { optionalReuseGroups, rebuiltGroups }))) return false;
    this.#begun = true;
    if (this.#publish === false) cache.stopCommitting();
    if (catchUp === null || (await catchUp.resume())) return true;
    cache.suspend();
    return false;
  }

  suspend(): void {
    this.cache.suspend();
    this.catchUp?.suspend();
  }

  close(): void {
    this.catchUp?.close();
    this.catchUp = null;
    this.cache.close();
  }
}
