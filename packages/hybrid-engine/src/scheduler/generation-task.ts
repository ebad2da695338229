import { type KvCache, PagesLostError } from '@bufferwise/cache-manager';
import { planChunks } from '../engine/chunk-plan.ts';
import { type GenerationRequest, groupReuse } from '../engine/generation.ts';
import type { SequenceChunk } from '../engine/gpu-model.ts';
import type { OpenedReuse, ReuseOpener } from '../reuse/open-reuse.ts';
import type { Task } from './task.ts';
import { TokenList } from './token-list.ts';

/** What tasks need of the engine. */
export interface TaskHost {
  /** Tokens of one request in one step at most, and the grid on which prompts are cut. */
  readonly chunkTokens: number;
  /** Tokens of a block where whole blocks are kept outside of the process: a prompt is cut at its last one then. Else 0. */
  readonly outsideBlockTokens: number;
  /** Tokens of a block. */
  readonly blockTokens: number;
  readonly reuse: ReuseOpener;
  /** Brings recurrent state that is kept as tokens to be replayed up to date: before anybody copies it. */
  settle(cache: KvCache): void;
  /** Somebody waits for a task, perhaps for the first time. */
  ask(task: Task): void;
  /** The task has ended. */
  ended(task: Task): void;
}

/** The part of a request that says where it comes in, and what it may share. */
export type PromptRequest = Pick<
  GenerationRequest,
  'prompt' | 'turnBorders' | 'lookup' | 'publish' | 'id' | 'onBegin' | 'scope' | 'signal' | 'priority'
>;

/** What a request has cost, counted as it ran. */
export interface TaskCounts {
  /** Tokens of the prompt that were reused when it came in first. */
  reusedTokens: number;
  /** Tokens of the prompt that were computed for the first time. */
  computedTokens: number;
  /** Tokens computed once more: because pages were given up, or to fill groups that were not reused. */
  recomputedTokens: number;
  /** Times that it gave its place on the device up. */
  preemptions: number;
}

/**
 * A prompt on its way through the model, and the request's pages on their way through the cache: opened, perhaps suspended, perhaps
 * given up and computed anew. What comes behind the prompt is for subclasses.
 *
 * The pages hold the first `cache.historyLength` of the sequence's tokens; what is known beyond is computed step by step.
 */
export abstract class GenerationTask implements Task {
  readonly priority: number;
  readonly arrival: number;
  readonly counts: TaskCounts = { reusedTokens: 0, computedTokens: 0, recomputedTokens: 0, preemptions: 0 };
  protected readonly host: TaskHost;
  readonly request: PromptRequest;
  protected readonly promptLength: number;
  /** Prompt, and whatever of the answer all of its continuations have in common. */
  protected readonly known: TokenList;
  /** Groups and coverage at the first opening. */
  protected firstOpened: OpenedReuse | null = null;
  #opened: OpenedReuse | null = null;
  #ended = false;
  #failed = false;
  #mayReuse: boolean;
  #error: unknown;
  /** Where the prompt is cut, for snapshots. */
  #cuts: readonly number[] = [];
  /** End of the step that was prepared. */
  #end = 0;
  /** How far into the sequence tokens have been through the model, or were reused. */
  #reached = 0;

  constructor(host: TaskHost, request: PromptRequest, arrival: number) {
    this.host = host;
    this.request = request;
    this.priority = request.priority ?? 0;
    this.arrival = arrival;
    this.known = new TokenList(request.prompt);
    this.promptLength = request.prompt.length;
    this.#mayReuse = request.lookup ?? true;
  }

  abstract get wanted(): boolean;
  abstract accept(rows: readonly (readonly Float32Array[])[]): void;

  /** The prompt, and what is known of the answer: a view until there is more. */
  get tokens(): Uint32Array {
    return this.known.all;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get active(): boolean {
    return this.#opened?.cache.status === 'active';
  }

  get holding(): boolean {
    return this.#opened !== null;
  }

  get decoding(): boolean {
    return this.#opened !== null && this.#opened.catchUp === null && this.pending <= 1;
  }

  async open(): Promise<boolean> {
    for (;;) {
      this.#opened ??= this.#lookUp();
      const opened = this.#opened;
      try {
        if (!(await opened.resume())) return false;
      } catch (error) {
        if (!(error instanceof PagesLostError)) throw error;
        // What was lost is computed again, as if the request had been opened on what is left.
        this.#giveBack();
        continue;
      }
      if (!this.#ended) this.#begin(opened);
      return true;
    }
  }

  nextTokens(most: number): number {
    const { catchUp } = this.requireOpened();
    const room = Math.min(most, this.host.chunkTokens);
    if (catchUp !== null) return Math.min(room, catchUp.remaining);
    return Math.min(room, this.#chunkEnd() - this.cache.historyLength);
  }

  prepare(numTokens: number): boolean {
    const { catchUp } = this.requireOpened();
    if (catchUp !== null) return catchUp.prepare(numTokens);
    const start = this.cache.historyLength;
    return this.cache.resize(start + numTokens, start) && this.prepareUpTo(start + numTokens);
  }

  chunks(): readonly SequenceChunk[] {
    const { catchUp } = this.requireOpened();
    if (catchUp !== null) return catchUp.chunks(this.known);
    const { cache } = this;
    const start = cache.historyLength;
    const logits = this.#end === this.known.length ? 'last' : 'none';
    return [{ cache, tokens: this.known.slice(start, this.#end), start, logits, snapshot: this.#cuts.includes(this.#end) }];
  }

  submitted(): void {
    const { catchUp } = this.requireOpened();
    if (catchUp !== null) {
      this.counts.recomputedTokens += catchUp.submitted();
      return;
    }
    const start = this.cache.historyLength;
    this.count(start, this.#end);
    this.write(this.known.slice(start, this.#end), this.#cuts.includes(this.#end));
  }

  suspend(): void {
    this.counts.preemptions++;
    const opened = this.requireOpened();
    // It may be closed without coming back, and what it leaves has to be what it says.
    this.#settle(opened);
    opened.suspend();
  }

  release(): void {
    this.counts.preemptions++;
    this.#giveBack();
  }

  forgoReuse(): boolean {
    if (this.active || !this.#mayReuse || this.#opened?.matched === 0) return false;
    this.#mayReuse = false;
    this.#giveBack();
    return true;
  }

  fail(error: unknown): void {
    if (this.#ended) return;
    this.#failed = true;
    this.#error = error;
    this.end();
  }

  /** Gives everything back; what was published stays. Does nothing the second time. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.request.signal?.removeEventListener('abort', this.#onAbort);
    this.#giveBack();
    this.host.ended(this);
    this.onEnd();
  }

  /** Somebody waits for it. From the first time on it is known to the scheduler and listens to its signal. */
  protected ask(): void {
    const { signal } = this.request;
    if (this.#ended) return;
    if (signal?.aborted) {
      this.fail(signal.reason);
      return;
    }
    signal?.addEventListener('abort', this.#onAbort);
    this.host.ask(this);
  }

  /** Throws what the task failed with, if it did. */
  protected throwIfFailed(): void {
    if (this.#failed) throw this.#error;
  }

  /** Where the prompt is cut besides, in tokens: a step ends there, and a snapshot is taken. */
  protected get extraCuts(): readonly number[] {
    return [];
  }

  /** Tells whoever waits. */
  protected abstract onEnd(): void;

  protected get cache(): KvCache {
    return this.requireOpened().cache;
  }

  /** Known tokens that the pages do not hold yet. */
  protected get pending(): number {
    return this.known.length - this.cache.historyLength;
  }

  /** Goes on with pages that somebody else filled, for the same tokens. */
  protected adopt(opened: OpenedReuse): void {
    this.#opened = opened;
    this.#begin(opened);
  }

  /** Says up to which token the step goes that there is room for. */
  protected prepareUpTo(end: number): true {
    this.#end = end;
    return true;
  }

  protected requireOpened(): OpenedReuse {
    if (this.#opened === null) throw new Error('a task without pages is in a step');
    return this.#opened;
  }

  /** Tells the cache of tokens behind its history that were written. */
  protected write(tokens: Uint32Array, snapshot: boolean): void {
    const { cache } = this;
    const end = cache.historyLength + tokens.length;
    if (this.request.publish === false) cache.resize(null, end);
    else cache.commit(tokens, { snapshot });
  }

  protected count(start: number, end: number): void {
    this.counts.recomputedTokens += Math.max(0, Math.min(end, this.#reached) - start);
    this.counts.computedTokens += Math.max(0, Math.min(end, this.promptLength) - Math.max(start, this.#reached));
    this.#reached = Math.max(this.#reached, end);
  }

  readonly #onAbort = () => this.fail(this.request.signal?.reason);

  #lookUp(): OpenedReuse {
    const { id, scope, publish = true } = this.request;
    // The last token is always computed: its logits choose the next one.
    const tokens = this.known.slice(0, this.known.length - 1);
    return this.host.reuse.open({ tokens, id, lookup: this.#mayReuse, scope, publish, expectedPromptLength: this.promptLength });
  }

  #begin(opened: OpenedReuse): void {
    const { cache } = opened;
    if (this.firstOpened === null) {
      this.firstOpened = opened;
      this.counts.reusedTokens = opened.matched;
      this.#reached = opened.matched;
      this.request.onBegin?.({ reusedTokens: opened.matched, groups: groupReuse(opened) });
    }
    const { promptLength } = this;
    const { chunkTokens, outsideBlockTokens } = this.host;
    const { turnBorders } = this.request;
    const snapshotPoints = cache.snapshotPoints({ promptLength, turnBorders, every: chunkTokens });
    snapshotPoints.push(...this.extraCuts);
    if (outsideBlockTokens > 0) snapshotPoints.push(promptLength - 1 - ((promptLength - 1) % outsideBlockTokens));
    this.#cuts = planChunks({ matched: cache.historyLength, promptLength, chunkTokens, snapshotPoints });
  }

  /** Where the next chunk ends at the latest: at a cut of the prompt, or with what is known. */
  #chunkEnd(): number {
    const start = this.cache.historyLength;
    return this.#cuts.find((cut) => cut > start) ?? this.known.length;
  }

  #settle({ cache, catchUp }: OpenedReuse): void {
    if (catchUp === null && cache.status === 'active' && this.request.publish !== false) this.host.settle(cache);
  }

  #giveBack(): void {
    const opened = this.#opened;
    this.#opened = null;
    if (opened === null) return;
    this.#settle(opened);
    opened.close();
  }
}
