import { setImmediate } from 'node:timers/promises';
import { KvCacheManager } from '@bufferwise/cache-manager';
import type { LayerGroupId, Lifecycle } from '@bufferwise/core-policy';
import { ReuseSimulation, type SimulatedRequest } from '@bufferwise/hybrid-engine';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import type { TraceRequest } from '@bufferwise-internal/request-traces';
import { NullPageDevice } from './null-page-device.ts';
import { NullTierStore } from './null-tier-store.ts';
import type { ReplayGroup, ReplayResult, ReplaySample } from './replay-result.ts';
import type { ReplaySettings } from './replay-settings.ts';

export interface ReplayRun {
  /** Ends the replay between two steps. */
  signal: AbortSignal;
  /** Told how far it is. */
  progress(admitted: number, hitRate: number): void;
}

const NUM_SAMPLES = 48;
/** Milliseconds after which others get a turn: the bar, and Ctrl-C. */
const TURN_MS = 40;

const SNAPSHOT = { snapshot: true };
const NO_SNAPSHOT = { snapshot: false };

/**
 * Serves the requests in order and in a closed loop, without regard to arrival times, on a manager whose pages hold nothing. They begin as in
 * the engine: what a request lacks of its match is computed again where that is less than to do without the match.
 */
export async function replayTrace(
  requests: readonly TraceRequest[],
  settings: ReplaySettings,
  run: ReplayRun,
): Promise<ReplayResult> {
  const loop = new ReplayLoop(requests, settings, run);
  return loop.run();
}

interface Running {
  readonly request: TraceRequest;
  /** The prompt, then what was answered before a preemption. */
  readonly prompt: Uint32Array;
  readonly begun: SimulatedRequest;
  /** Where chunks end that leave a snapshot. */
  readonly ends: number[];
  /** Tokens that there is room for, all of them in this step or before. */
  done: number;
  /** Tokens answered. */
  generated: number;
  stepped: boolean;
}

interface Waiting {
  readonly request: TraceRequest;
  readonly prompt: Uint32Array;
  readonly generated: number;
  /** False: what it found was more than fits beside it. */
  readonly mayReuse: boolean;
}

class ReplayLoop {
  readonly #requests: readonly TraceRequest[];
  readonly #settings: ReplaySettings;
  readonly #run: ReplayRun;
  readonly #disk: NullTierStore | undefined;
  readonly #manager: KvCacheManager;
  readonly #reuse: ReuseSimulation;
  readonly #running: Running[] = [];
  /** Requests that made way for others, the next one last. */
  readonly #preempted: Waiting[] = [];
  readonly #samples: ReplaySample[] = [];
  readonly #sampleEvery: number;
  readonly #token = new Uint32Array(1);
  #sampled = { requests: 0, promptTokens: 0, hitTokens: 0, evictedPages: [] as readonly number[] };
  #rebalanced = 0;
  #next = 0;
  #budget = 0;
  /** Whether a request has ended since one last failed to be admitted, or had to make way: else they would take the room from each other in turns. */
  #mayAdmit = true;
  #operations = 0;
  #managerMs = 0;
  readonly #counts = {
    requests: 0,
    skipped: 0,
    truncated: 0,
    preemptions: 0,
    rebuilds: 0,
    moves: 0,
    steps: 0,
    promptTokens: 0,
    hitTokens: 0,
    computedTokens: 0,
    outputTokens: 0,
  };

  constructor(requests: readonly TraceRequest[], settings: ReplaySettings, run: ReplayRun) {
    this.#requests = requests;
    this.#settings = settings;
    this.#run = run;
    this.#sampleEvery = Math.max(1, Math.ceil(requests.length / NUM_SAMPLES));
    const { config, eviction } = settings;
    this.#disk = config.tiers.some(({ tier }) => tier === 'disk') ? new NullTierStore() : undefined;
    this.#manager = new KvCacheManager({ config, device: new NullPageDevice(), disk: this.#disk, eviction });
    this.#reuse = new ReuseSimulation(this.#manager, config);
  }

  async run(): Promise<ReplayResult> {
    try {
      let turn = performance.now();
      while (this.#running.length > 0 || this.#preempted.length > 0 || this.#next < this.#requests.length) {
        this.#budget = this.#settings.stepTokens;
        this.#serveRunning();
        await this.#admit();
        this.#finishStep();
        await this.#rebalance();
        this.#counts.steps++;
        if (performance.now() - turn < TURN_MS) continue;
        this.#run.progress(this.#next, rate(this.#counts.hitTokens, this.#counts.promptTokens));
        await setImmediate();
        this.#run.signal.throwIfAborted();
        turn = performance.now();
      }
      await this.#manager.settled();
      this.#sample();
      return this.#result();
    } finally {
      await this.#manager.close({ force: true });
    }
  }

  /** A call of the manager, counted and timed. */
  #timed<T>(call: () => T): T {
    const start = performance.now();
    try {
      return call();
    } finally {
      this.#managerMs += performance.now() - start;
      this.#operations++;
    }
  }

  /** Room for `length` tokens, if need be at the cost of those that came last. */
  #grow(each: Running, length: number, mayPreempt: boolean): boolean {
    return this.#makeRoom(each, mayPreempt, () => each.begun.cache.resize(length, each.done));
  }

  #makeRoom(each: Running, mayPreempt: boolean, take: () => boolean): boolean {
    while (!this.#timed(take)) {
      if (!mayPreempt || !this.#makeWay(each)) return false;
    }
    return true;
  }

  /** Takes the request that was admitted last off, to be served again. False when that is `each` itself. */
  #makeWay(each: Running): boolean {
    const last = this.#running.pop() as Running;
    const isAlone = last === each && this.#running.length === 0;
    this.#timed(() => last.begun.close());
    this.#mayAdmit = isAlone;
    if (isAlone && last.begun.matched === 0) {
      this.#counts.truncated++;
    } else {
      this.#counts.preemptions++;
      this.#preempted.push(again(last, !isAlone));
    }
    return last !== each;
  }

  /** Prompts that were begun, and one token for every request that answers. */
  #serveRunning(): void {
    for (let i = 0; i < this.#running.length && this.#budget > 0; i++) {
      const each = this.#running[i];
      if (each.done < each.prompt.length) {
        this.#extendPrompt(each, true);
        continue;
      }
      this.#token[0] = each.request.outputToken(Math.max(0, each.generated - 1));
      if (!this.#grow(each, each.done + 1, true)) continue;
      this.#timed(() => each.begun.cache.commit(this.#token, NO_SNAPSHOT));
      each.done++;
      each.stepped = true;
      this.#budget--;
    }
  }

  /** Orders as much of a prompt as the step allows, first what its match lacks. False when there was no room for any of it. */
  #extendPrompt(each: Running, mayPreempt: boolean): boolean {
    const before = this.#budget;
    const { begun } = each;
    while (this.#budget > 0 && begun.remainingTokens > 0) {
      const count = Math.min(begun.remainingTokens, this.#budget);
      if (!this.#makeRoom(each, mayPreempt, () => begun.runAgain(count))) return this.#budget < before;
      this.#compute(each, count);
    }
    while (this.#budget > 0 && each.done < each.prompt.length) {
      const end = each.ends[0] ?? each.prompt.length;
      const count = Math.min(end - each.done, this.#budget);
      if (!this.#grow(each, each.done + count, mayPreempt)) return this.#budget < before;
      const tokens = each.prompt.subarray(each.done, each.done + count);
      each.done += count;
      this.#compute(each, count);
      const isSnapshot = each.ends[0] === each.done;
      if (isSnapshot) each.ends.shift();
      this.#timed(() => begun.cache.commit(tokens, isSnapshot ? SNAPSHOT : NO_SNAPSHOT));
    }
    return true;
  }

  /** Tokens of a prompt go through the model. */
  #compute(each: Running, numTokens: number): void {
    each.stepped = true;
    this.#budget -= numTokens;
    this.#counts.computedTokens += numTokens;
  }

  /** Requests that wait, in the order of the trace, until one does not fit. */
  async #admit(): Promise<void> {
    while (this.#budget > 0 && this.#running.length < this.#settings.maxRunning && this.#mayAdmit) {
      const waiting = this.#preempted.at(-1) ?? this.#fromTrace();
      if (waiting === undefined) return;
      const isNew = this.#preempted.length === 0;
      const each = await this.#open(waiting);
      if (each === null) {
        this.#mayAdmit = false;
        if (this.#running.length > 0) return;
        this.#skip(isNew);
        continue;
      }
      this.#running.push(each);
      if (isNew) this.#count(each);
      else this.#preempted.pop();
    }
  }

  #fromTrace(): Waiting | undefined {
    const request = this.#requests[this.#next];
    return request && { request, prompt: request.prompt(), generated: 0, mayReuse: true };
  }

  /** Null when there is no room now. What a request found may be more than fits beside it: alone it does without before it is given up. */
  async #open(waiting: Waiting): Promise<Running | null> {
    const each = await this.#begin(waiting);
    return each === null && this.#matched > 0 && this.#running.length === 0 ? this.#begin({ ...waiting, mayReuse: false }) : each;
  }

  async #begin({ request, prompt, generated, mayReuse }: Waiting): Promise<Running | null> {
    const begun = this.#timed(() => this.#reuse.open(prompt, mayReuse));
    this.#matched = begun.matched;
    const start = performance.now();
    const hasRoom = await begun.resume();
    this.#managerMs += performance.now() - start;
    this.#operations++;
    const ends = begun.cache.snapshotPoints({ promptLength: prompt.length, every: this.#settings.snapshotEvery });
    const each: Running = { request, prompt, begun, ends, done: begun.matched, generated, stepped: false };
    const isSecondRun = begun.remainingTokens > 0;
    if (hasRoom && this.#extendPrompt(each, false)) {
      if (isSecondRun) this.#counts.rebuilds++;
      return each;
    }
    this.#timed(() => begun.close());
    return null;
  }

  /** Tokens that the request opened last began with. */
  #matched = 0;

  #count(each: Running): void {
    this.#next++;
    this.#counts.requests++;
    this.#counts.promptTokens += each.prompt.length;
    this.#counts.hitTokens += this.#matched;
    if (this.#next % this.#sampleEvery === 0) this.#sample();
  }

  /** With all memory for itself the request finds no room: it never will. */
  #skip(isNew: boolean): void {
    if (isNew) {
      this.#next++;
      this.#counts.skipped++;
    } else {
      this.#preempted.pop();
      this.#counts.truncated++;
    }
    this.#mayAdmit = true;
  }

  /** The step has run: answers grow by one token, and those that are whole are let go. */
  #finishStep(): void {
    let kept = 0;
    for (const each of this.#running) {
      if (each.stepped && each.done >= each.prompt.length) {
        each.generated++;
        this.#counts.outputTokens++;
      }
      each.stepped = false;
      if (each.generated < each.request.outputLength) {
        this.#running[kept++] = each;
        continue;
      }
      this.#timed(() => each.begun.close());
      this.#mayAdmit = true;
    }
    this.#running.length = kept;
  }

  /** Between two steps, now and then. */
  async #rebalance(): Promise<void> {
    const { rebalanceEvery } = this.#settings;
    if (rebalanceEvery === 0 || this.#next < this.#rebalanced + rebalanceEvery) return;
    this.#rebalanced = this.#next;
    if (!(await this.#manager.rebalance())) return;
    this.#counts.moves++;
    this.#mayAdmit = true;
  }

  /** Looks at what happened since the last look. */
  #sample(): void {
    const { requests, promptTokens, hitTokens } = this.#counts;
    if (requests === this.#sampled.requests) return;
    const evictedPages = this.#manager.statistics().groups.map((group) => group.evictedPages);
    const iterations = [...this.#manager.takeIterationStatistics().values()];
    this.#samples.push({
      requests,
      promptTokens: promptTokens - this.#sampled.promptTokens,
      hitTokens: hitTokens - this.#sampled.hitTokens,
      hitRates: iterations.map(({ reusedPages, missedPages, hitRate }) => (reusedPages + missedPages === 0 ? null : hitRate)),
      evictedPages: evictedPages.map((pages, id) => pages - (this.#sampled.evictedPages[id] ?? 0)),
    });
    this.#sampled = { requests, promptTokens, hitTokens, evictedPages };
  }

  #result(): ReplayResult {
    const { lifecycles, layout } = this.#manager;
    const { groups, blocks } = this.#manager.statistics();
    const { promptTokens, hitTokens, computedTokens } = this.#counts;
    return {
      label: this.#settings.label,
      ...this.#counts,
      hitRate: rate(hitTokens, promptTokens),
      recomputedTokens: computedTokens - (promptTokens - hitTokens),
      savedRate: promptTokens === 0 ? 0 : 1 - computedTokens / promptTokens,
      keptTokens: blocks * layout.tokensPerBlock,
      keptBytes: groups.reduce((sum, { groupId, pages }) => sum + pages * pageBytes(layout, groupId), 0),
      disk: this.#disk === undefined ? null : { ...this.#disk.traffic },
      operations: this.#operations,
      managerMs: this.#managerMs,
      operationsPerSecond: this.#managerMs === 0 ? 0 : this.#operations / (this.#managerMs / 1000),
      groups: groups.map(({ groupId, policy, counts, pages, evictedPages, missedSnapshots }): ReplayGroup => {
        const { reusedPages, missedPages, hitRate, offloadedBytes, onboardedBytes, droppedBytes } = counts;
        return {
          groupId,
          policy,
          kind: lifecycleName(lifecycles.get(groupId)),
          reusedPages,
          missedPages,
          hitRate,
          keptBytes: pages * pageBytes(layout, groupId),
          evictedPages,
          missedSnapshots,
          offloadedBytes,
          onboardedBytes,
          droppedBytes,
        };
      }),
      samples: this.#samples,
    };
  }
}

/** Bytes of one page of a group. */
function pageBytes(layout: StorageLayout, groupId: LayerGroupId): number {
  return layout.poolGroups.find(({ lifecycleIds }) => lifecycleIds.includes(groupId))?.slotBytes ?? 0;
}

/** A request that was stopped: its prompt is now what it was, and what it has answered so far. */
function again({ request, prompt, generated }: Running, mayReuse: boolean): Waiting {
  const kept = Math.max(0, generated - 1);
  const longer = new Uint32Array(request.promptLength + kept);
  longer.set(prompt.subarray(0, request.promptLength));
  for (let i = 0; i < kept; i++) longer[request.promptLength + i] = request.outputToken(i);
  return { request, prompt: longer, generated: kept, mayReuse };
}

function lifecycleName(lifecycle: Lifecycle): string {
  if (lifecycle.kind === 'ssm') return 'state';
  return lifecycle.windowSize === null ? 'full' : `window ${lifecycle.windowSize}`;
}

function rate(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
