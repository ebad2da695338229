import { divUp, type LayerGroupId, reuseOutcome } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import type { PageId, PageTable } from '../page/page-table.ts';
import type { GroupRules } from '../request/group-rules.ts';
import type { GroupState } from '../request/group-state.ts';
import type { RequestState } from '../request/request-state.ts';
import type { ResizePlan } from '../request/resize-plan.ts';
import {
  COUNTER,
  NUM_COUNTERS,
  type PageCounts,
  pageCounts,
  rate,
  type SnapshotLookups,
  snapshotLookups,
} from './page-counts.ts';
import type { RequestStatistics } from './request-statistics.ts';

/** Where a page went, for the counters that also count bytes. */
const TRAFFIC = {
  copied: { pages: COUNTER.copiedPages, bytes: COUNTER.copiedBytes },
  onboarded: { pages: COUNTER.onboardedPages, bytes: COUNTER.onboardedBytes },
  offloaded: { pages: COUNTER.offloadedPages, bytes: COUNTER.offloadedBytes },
  dropped: { pages: COUNTER.droppedPages, bytes: COUNTER.droppedBytes },
} as const;
type Traffic = keyof typeof TRAFFIC;

/**
 * Counts what requests do, by group. Each hook is told once the change is certain, so what throws or says false counts nothing.
 *
 * A request is counted when it starts, at its first successful resume: by then it is known which optional groups it uses, and
 * waiting for room, trying again, suspending and resuming add nothing to what it looked for.
 */
export class StatisticsRecorder {
  readonly #groups: readonly GroupRules[];
  readonly #pages: PageTable;
  /** Bytes of a slot, by pool group. */
  readonly #slotBytes: readonly number[];
  readonly #tokensPerBlock: number;
  /** Counts since the beginning: entry `group * NUM_COUNTERS + counter`. */
  readonly #counts: Float64Array;
  /** `#counts` when the iteration statistics were last taken. */
  readonly #taken: Float64Array;
  /** How often they were taken. */
  #window = 0;
  readonly #requests = noRequests();
  #takenRequests = noRequests();

  constructor(options: {
    groups: readonly GroupRules[];
    pages: PageTable;
    slotBytes: readonly number[];
    tokensPerBlock: number;
  }) {
    this.#groups = options.groups;
    this.#pages = options.pages;
    this.#slotBytes = options.slotBytes;
    this.#tokensPerBlock = options.tokensPerBlock;
    this.#counts = new Float64Array(options.groups.length * NUM_COUNTERS);
    this.#taken = new Float64Array(this.#counts.length);
  }

  // ── Hooks ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** A request starts: its groups know whether they are reused, and still have their claims. */
  started(state: RequestState): void {
    this.#requests.started++;
    if (state.lookedUp !== null) {
      this.#requests.lookups++;
      this.#requests.promptTokens += state.lookedUp;
      this.#requests.hitTokens += state.matched;
    }
    for (const group of state.groups) {
      if (group.isAttention) this.#startedAttention(state, group);
      else this.#startedState(state, group);
    }
  }

  /** A request that was suspended goes on. */
  resumed(): void {
    this.#requests.resumed++;
  }

  suspended(): void {
    this.#requests.suspended++;
  }

  /** A request has parted into beams, or into two requests: these pages were made for what each has to itself. */
  branched(created: readonly PageId[]): void {
    for (const page of created) {
      this.#add(this.#pages.lifecycle[page], COUNTER.allocatedPages, 1);
      this.#add(this.#pages.lifecycle[page], COUNTER.newPages, 1);
    }
  }

  /** A resize changes the number of blocks. No garbage. */
  resized(state: RequestState, plan: ResizePlan): void {
    const { oldBlocks, newBlocks } = plan;
    const { growth } = state;
    if (growth.window !== this.#window) {
      growth.window = this.#window;
      growth.countedFrom = oldBlocks;
      growth.numBeams = state.beamWidth;
    }
    // Pages of further beams were counted as they parted, and of fewer beams there are no more to give back.
    growth.numBeams = Math.min(growth.numBeams, state.beamWidth);
    if (newBlocks < oldBlocks) {
      this.#takeBack(state, newBlocks, oldBlocks);
      growth.countedFrom = Math.min(growth.countedFrom, newBlocks);
    } else if (newBlocks > oldBlocks) {
      const isGeneration = plan.history >= state.expectedPromptLength;
      if (isGeneration) growth.generationFrom = Math.min(growth.generationFrom, oldBlocks);
      for (const group of state.groups)
        if (group.isAttention) this.#grew(group, plan.numNewPages(group) * state.beamWidth, isGeneration);
    }
  }

  /** Pages of a group were copied inside the device, moved between tiers, or dropped by the coldest. `bytes`: those of one page there. */
  moved(traffic: Traffic, group: number, count: number, bytes: number = this.#slotBytes[this.#groups[group].poolGroup]): void {
    const counters = TRAFFIC[traffic];
    this.#add(group, counters.pages, count);
    this.#add(group, counters.bytes, count * bytes);
  }

  // ── Answers ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** What each group did since the last time; groups that did nothing are left out. */
  takeIteration(): Map<LayerGroupId, PageCounts> {
    const statistics = new Map<LayerGroupId, PageCounts>();
    for (const { id } of this.#groups) {
      const since = this.#countsOf(id).map((count, i) => count - this.#taken[id * NUM_COUNTERS + i]);
      if (since.some((count) => count !== 0)) statistics.set(id, pageCounts(since));
    }
    this.#taken.set(this.#counts);
    this.#window++;
    return statistics;
  }

  /** What requests came to since the last time. */
  takeRequests(): RequestStatistics {
    const taken = this.#takenRequests;
    this.#takenRequests = { ...this.#requests };
    const { started, resumed, suspended, lookups, promptTokens, hitTokens } = this.#requests;
    return withRate({
      started: started - taken.started,
      resumed: resumed - taken.resumed,
      suspended: suspended - taken.suspended,
      lookups: lookups - taken.lookups,
      promptTokens: promptTokens - taken.promptTokens,
      hitTokens: hitTokens - taken.hitTokens,
    });
  }

  /** Since the beginning, as the next two. */
  get requests(): RequestStatistics {
    return withRate(this.#requests);
  }

  countsOf(group: number): PageCounts {
    return pageCounts(this.#countsOf(group));
  }

  snapshotsOf(group: number): SnapshotLookups {
    return snapshotLookups(this.#countsOf(group));
  }

  // ── Counting ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #startedAttention(state: RequestState, group: GroupState): void {
    const { id } = group.rules;
    const numLive = numLiveBlocks(group.rules, state.matched);
    if (!group.reused) {
      this.#add(id, COUNTER.allocatedPages, numLive);
      return;
    }
    const isPartial = state.matched % this.#tokensPerBlock !== 0;
    this.#add(id, COUNTER.fullyReusedPages, isPartial ? numLive - 1 : numLive);
    if (!isPartial) return;
    const source = group.page(divUp(state.matched, this.#tokensPerBlock) - 1);
    this.#add(id, this.#pages.block[source] === NONE ? COUNTER.missedPages : COUNTER.partlyReusedPages, 1);
    this.#add(id, COUNTER.allocatedPages, 1);
    this.#add(id, COUNTER.newPages, 1);
  }

  #startedState(state: RequestState, group: GroupState): void {
    const { id, policy } = group.rules;
    this.#add(id, COUNTER.allocatedPages, 1);
    if (group.reused || state.matched === 0) this.#add(id, COUNTER.newPages, 1);
    const outcome = state.lookedUp === null ? 'neither' : reuseOutcome(policy, group.reused, group.reused);
    if (outcome === 'neither' || state.lookedUp === null) return;
    const isAligned = state.matched % this.#tokensPerBlock === 0;
    if (outcome === 'miss') this.#add(id, COUNTER.missedPages, 1);
    else this.#add(id, isAligned ? COUNTER.fullyReusedPages : COUNTER.partlyReusedPages, 1);
    this.#add(id, COUNTER.lookups, 1);
    if (outcome === 'hit') {
      this.#add(id, COUNTER.hits, 1);
      this.#add(id, isAligned ? COUNTER.alignedHits : COUNTER.unalignedHits, 1);
      this.#add(id, COUNTER.reusedTokens, state.matched);
    }
    this.#add(id, COUNTER.unreusedTokens, state.lookedUp - (outcome === 'hit' ? state.matched : 0));
  }

  #grew(group: GroupState, numPages: number, isGeneration: boolean): void {
    const { id } = group.rules;
    this.#add(id, COUNTER.allocatedPages, numPages);
    this.#add(id, COUNTER.newPages, numPages);
    if (isGeneration) this.#add(id, COUNTER.generationPages, numPages);
    else if (reuseOutcome(group.rules.policy, false, group.reused) === 'miss') this.#add(id, COUNTER.missedPages, numPages);
  }

  /**
   * Blocks [begin, end) go before anything was written in them: what they counted in this window is taken out. Behind the
   * history every attention group has a page in each block, so the same number everywhere.
   */
  #takeBack(state: RequestState, begin: number, end: number): void {
    const { countedFrom, generationFrom, numBeams } = state.growth;
    const numPages = numBeams * Math.max(0, end - Math.max(begin, countedFrom));
    const numGeneration = numBeams * Math.max(0, end - Math.max(begin, countedFrom, generationFrom));
    for (const group of state.groups) {
      if (!group.isAttention) continue;
      this.#grew(group, numGeneration - numPages, false);
      this.#grew(group, -numGeneration, true);
    }
  }

  #add(group: number, counter: number, count: number): void {
    this.#counts[group * NUM_COUNTERS + counter] += count;
  }

  #countsOf(group: number): Float64Array {
    return this.#counts.subarray(group * NUM_COUNTERS, (group + 1) * NUM_COUNTERS);
  }
}

type RequestCounts = { -readonly [K in Exclude<keyof RequestStatistics, 'hitRate'>]: number };

function noRequests(): RequestCounts {
  return { started: 0, resumed: 0, suspended: 0, lookups: 0, promptTokens: 0, hitTokens: 0 };
}

function withRate(counts: RequestCounts): RequestStatistics {
  return { ...counts, hitRate: rate(counts.hitTokens, counts.promptTokens - counts.hitTokens) };
}

/** Blocks of an attention group that tokens after `numTokens` read. */
function numLiveBlocks(rules: GroupRules, numTokens: number): number {
  const numBlocks = divUp(numTokens, rules.tokensPerBlock);
  const numSinks = Math.min(rules.staleBegin(numTokens), numBlocks);
  return numSinks + Math.max(0, numBlocks - Math.max(numSinks, rules.staleEnd(numTokens)));
}
