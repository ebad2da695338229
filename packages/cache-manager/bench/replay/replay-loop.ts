import { memoryUsage } from 'node:process';
import type { TraceRequest } from '@bufferwise-internal/request-traces';
import { type KvCache, KvCacheManager, type KvCacheManagerOptions } from '../../src/index.ts';
import { NullPageDevice } from './null-page-device.ts';
import { ASKING_MS, processorMs } from './processor-clock.ts';
import { BLOCK_TOKENS, type ModelKind, replayConfig } from './replay-config.ts';
import type { Workload } from './workloads.ts';

const STEP_TOKENS = 8192;

export interface ReplayOptions {
  workload: Workload;
  kind: ModelKind;
  eviction?: KvCacheManagerOptions['eviction'];
  /** Part of all bytes that holds recurrent state. */
  stateShare?: number;
  /** Tokens between the snapshots of a prompt. */
  grid?: number;
  /** Requests between two calls of `rebalance`; 0: never. */
  rebalanceEvery?: number;
  /** Told which request, by position in the workload, is admitted next. */
  admitting?: (index: number) => void;
}

export interface ReplayResult {
  promptTokens: number;
  hitTokens: number;
  outputTokens: number;
  preemptions: number;
  steps: number;
  /** Milliseconds of processor time in the manager: opening and resuming; making room for prompts; publishing them; decode steps; closing. */
  openMs: number;
  resizeMs: number;
  commitMs: number;
  decodeMs: number;
  closeMs: number;
  peakBytes: number;
  evictedPages: number[];
  missedSnapshots: number[];
  copiedSlots: number;
  /** How often memory went from one pool group to another. */
  moves: number;
}

/** Serves a workload in a closed loop, without regard to arrival times, on a manager whose pages hold nothing. */
export async function replay(options: ReplayOptions): Promise<ReplayResult> {
  const loop = new ReplayLoop(options);
  return loop.run();
}

interface Running {
  request: TraceRequest;
  /** The prompt, then what was answered before a preemption. */
  prompt: Uint32Array;
  kv: KvCache;
  /** Tokens that there is room for, all of them in this step or before. */
  done: number;
  /** Tokens answered. */
  generated: number;
  /** The last of them, which the next step takes in. */
  token: Uint32Array;
  /** Where chunks end that leave a snapshot; null when the model has no state. */
  ends: number[] | null;
  stepped: boolean;
}

class ReplayLoop {
  readonly #workload: Workload;
  readonly #hasState: boolean;
  readonly #grid: number;
  readonly #rebalanceEvery: number;
  /** Position of the next request when `rebalance` was last called. */
  #rebalanced = 0;
  readonly #admitting: (index: number) => void;
  readonly #device = new NullPageDevice();
  readonly #manager: KvCacheManager;
  readonly #running: Running[] = [];
  /** Requests that were preempted, the next one last. */
  readonly #preempted: { request: TraceRequest; prompt: Uint32Array; generated: number }[] = [];
  #next = 0;
  #budget = 0;
  /** Whether room was given back since a request last failed to be admitted. */
  #mayAdmit = true;
  readonly #result: ReplayResult = {
    promptTokens: 0,
    hitTokens: 0,
    outputTokens: 0,
    preemptions: 0,
    steps: 0,
    openMs: 0,
    resizeMs: 0,
    commitMs: 0,
    decodeMs: 0,
    closeMs: 0,
    peakBytes: 0,
    evictedPages: [],
    missedSnapshots: [],
    copiedSlots: 0,
    moves: 0,
  };

  constructor({
    workload,
    kind,
    eviction,
    stateShare = 0.5,
    grid = 1024,
    rebalanceEvery = 0,
    admitting = () => {},
  }: ReplayOptions) {
    this.#workload = workload;
    this.#rebalanceEvery = rebalanceEvery;
    this.#hasState = kind === 'state';
    this.#grid = grid;
    this.#admitting = admitting;
    const config = replayConfig(kind, workload.capacity, stateShare);
    this.#manager = new KvCacheManager({ config, device: this.#device, eviction });
  }

  async run(): Promise<ReplayResult> {
    const result = this.#result;
    while (this.#running.length > 0 || this.#preempted.length > 0 || this.#next < this.#workload.requests.length) {
      this.#budget = STEP_TOKENS;
      this.#serveRunning();
      await this.#admit();
      this.#finishStep();
      await this.#rebalance();
      if (result.steps++ % 64 === 0) result.peakBytes = Math.max(result.peakBytes, memoryUsage().rss);
    }
    const { groups } = this.#manager.statistics();
    result.evictedPages = groups.map(({ evictedPages }) => evictedPages);
    result.missedSnapshots = groups.map(({ missedSnapshots }) => missedSnapshots);
    result.copiedSlots = this.#device.copiedSlots;
    for (const { free, evictable, total } of this.#manager.storageStatistics(0)) {
      if (free + evictable !== total) throw new Error(`${total - free - evictable} of ${total} slots leaked`);
    }
    await this.#manager.close();
    return result;
  }

  /** Between two steps, now and then. */
  async #rebalance(): Promise<void> {
    if (this.#rebalanceEvery === 0 || this.#next < this.#rebalanced + this.#rebalanceEvery) return;
    this.#rebalanced = this.#next;
    if (!(await this.#manager.rebalance())) return;
    this.#result.moves++;
    this.#mayAdmit = true;
  }

  /** Prompts that were begun, and one token for every request that answers. */
  #serveRunning(): void {
    for (const { token, request, generated } of this.#running) if (generated > 0) token[0] = request.outputToken(generated - 1);
    let decodeStart = 0;
    const endDecoding = () => {
      if (decodeStart > 0) this.#result.decodeMs += processorMs() - decodeStart - ASKING_MS;
      decodeStart = 0;
    };
    for (let i = 0; i < this.#running.length && this.#budget > 0; i++) {
      const each = this.#running[i];
      if (each.done < each.prompt.length) {
        endDecoding();
        this.#extendPrompt(each, true);
        continue;
      }
      // One reading of the clock for all that decode in a row: a step takes little more than a reading does.
      if (decodeStart === 0) decodeStart = processorMs();
      let hasRoom = each.kv.resize(each.done + 1, each.done);
      while (!hasRoom && this.#preemptLast() !== each) hasRoom = each.kv.resize(each.done + 1, each.done);
      if (!hasRoom) continue;
      each.kv.commit(each.token, NO_SNAPSHOT);
      each.done++;
      each.stepped = true;
      this.#budget--;
    }
    endDecoding();
  }

  /** Orders as much of a prompt as the step allows. False when there was no room for any of it. */
  #extendPrompt(each: Running, mayPreempt: boolean): boolean {
    const before = each.done;
    while (this.#budget > 0 && each.done < each.prompt.length) {
      const count = Math.min((each.ends?.[0] ?? each.prompt.length) - each.done, this.#budget);
      const start = processorMs();
      let hasRoom = each.kv.resize(each.done + count, each.done);
      while (!hasRoom && mayPreempt && this.#preemptLast() !== each) hasRoom = each.kv.resize(each.done + count, each.done);
      this.#result.resizeMs += processorMs() - start - ASKING_MS;
      if (!hasRoom) return each.done > before;
      each.done += count;
      each.stepped = true;
      this.#budget -= count;
      this.#publish(each);
    }
    return true;
  }

  /** What is ordered is published: whoever reads it is ordered behind it, be it in the same step. */
  #publish(each: Running): void {
    const snapshot = each.ends?.[0] === each.done;
    const tokens = each.prompt.subarray(each.kv.numCommittedTokens, each.done);
    const start = processorMs();
    each.kv.commit(tokens, snapshot ? SNAPSHOT : NO_SNAPSHOT);
    this.#result.commitMs += processorMs() - start - ASKING_MS;
    if (snapshot) each.ends?.shift();
  }

  /** Requests that wait, in the order of the trace, until one does not fit. */
  async #admit(): Promise<void> {
    while (this.#budget > 0 && this.#running.length < this.#workload.maxRunning && this.#mayAdmit) {
      const again = this.#preempted.at(-1);
      const request = again?.request ?? this.#workload.requests[this.#next];
      if (request === undefined) return;
      if (!again) this.#admitting(this.#next);
      const prompt = again?.prompt ?? request.prompt();
      const lookup = prompt.subarray(0, prompt.length - 1);
      const start = processorMs();
      const kv = this.#manager.createKvCache({ tokens: lookup });
      const fits = await kv.resume();
      const matched = kv.numCommittedTokens;
      const opened = processorMs();
      this.#result.openMs += opened - start - ASKING_MS;
      const each: Running = {
        request,
        prompt,
        kv,
        done: matched,
        generated: again?.generated ?? 0,
        token: new Uint32Array(1),
        ends: null,
        stepped: false,
      };
      if (this.#hasState) {
        each.ends = kv.snapshotPoints({ promptLength: prompt.length, every: this.#grid, minGain: BLOCK_TOKENS });
      }
      if (!fits || !this.#extendPrompt(each, false)) {
        kv.close();
        this.#mayAdmit = false;
        return;
      }
      this.#running.push(each);
      if (again) {
        this.#preempted.pop();
        continue;
      }
      this.#next++;
      this.#result.promptTokens += prompt.length;
      this.#result.hitTokens += matched;
    }
  }

  /** The step has run: prompts are published, answers grow by one token, and those that are whole are let go. */
  #finishStep(): void {
    const result = this.#result;
    let kept = 0;
    for (const each of this.#running) {
      if (each.stepped) {
        each.stepped = false;
        if (each.done >= each.prompt.length) {
          each.generated++;
          result.outputTokens++;
        }
      }
      if (each.generated < each.request.outputLength) {
        this.#running[kept++] = each;
        continue;
      }
      const start = processorMs();
      each.kv.close();
      result.closeMs += processorMs() - start - ASKING_MS;
      this.#mayAdmit = true;
    }
    this.#running.length = kept;
  }

  /** Takes the request that was admitted last off, to be served again from the beginning. Returns it. */
  #preemptLast(): Running {
    const last = this.#running.pop() as Running;
    this.#result.preemptions++;
    const { request, generated, kv } = last;
    const prompt = new Uint32Array(request.promptLength + Math.max(0, generated - 1));
    prompt.set(last.prompt.subarray(0, request.promptLength));
    for (let i = 0; i + 1 < generated; i++) prompt[request.promptLength + i] = request.outputToken(i);
    kv.close();
    this.#preempted.push({ request, prompt, generated: Math.max(0, generated - 1) });
    this.#mayAdmit = true;
    return last;
  }
}

const SNAPSHOT = { snapshot: true };
const NO_SNAPSHOT = { snapshot: false };
