import type { KvCache } from '@bufferwise/cache-manager';
import type { GeneratedToken, GenerationReport, GenerationRequest } from '../engine/generation.ts';
import { groupReuse } from '../engine/generation.ts';
import type { SequenceChunk } from '../engine/gpu-model.ts';
import { OpenedReuse } from '../reuse/open-reuse.ts';
import type { Sampler } from '../sampling/sampler.ts';
import { type NgramOptions, ngramDrafts } from '../speculation/ngram-drafts.ts';
import { GenerationTask, type TaskHost } from './generation-task.ts';

/** Drafts of an answer, counted. */
interface DraftCounts {
  proposed: number;
  accepted: number;
}

export interface AnswerTaskOptions {
  readonly arrival: number;
  /** Which of the answers to its request it is. */
  readonly ordinal: number;
  /** Of this answer alone: it keeps the random numbers. */
  readonly sampler: Sampler;
  /** Null: tokens are computed one by one. */
  readonly speculation: NgramOptions | null;
}

/**
 * One answer to one prompt, token by token, as its reader asks for them.
 *
 * Answers to the same prompt can be siblings: the first computes the prompt, the others fork off behind it. Where there is no room for
 * a fork the sibling finds the prompt in the cache, as any request does.
 */
export class AnswerTask extends GenerationTask {
  readonly ordinal: number;
  readonly #answer: GenerationRequest;
  readonly #sampler: Sampler;
  readonly #speculation: NgramOptions | null;
  readonly #started = performance.now();
  readonly #drafts: DraftCounts = { proposed: 0, accepted: 0 };
  /** Chosen and not read yet. */
  readonly #ready: GeneratedToken[] = [];
  #siblings: AnswerTask[] = [];
  /** Who computes the prompt for this one, until it has forked off. */
  #leader: AnswerTask | null = null;
  #reader: (() => void) | null = null;
  #finishReason: GenerationReport['finishReason'] | null = null;
  #generated = 0;
  #firstTokenMs = 0;
  #draft: Uint32Array = new Uint32Array(0);

  constructor(host: TaskHost, request: GenerationRequest, { arrival, ordinal, sampler, speculation }: AnswerTaskOptions) {
    super(host, request, arrival);
    this.ordinal = ordinal;
    this.#answer = request;
    this.#sampler = sampler;
    this.#speculation = request.speculate === false ? null : speculation;
  }

  /** Makes others siblings of this one. Before any of them is asked for a token. */
  lead(siblings: readonly AnswerTask[]): void {
    this.#siblings = [...siblings];
    for (const sibling of siblings) sibling.#leader = this;
  }

  /** Goes on with a request that came from another worker. Before it is asked for a token. */
  arrive(cache: KvCache): void {
    this.adopt(OpenedReuse.arrived(cache, this.request.publish ?? true));
  }

  /** Whether another task computes its prompt. */
  get follows(): boolean {
    return this.#leader !== null;
  }

  get wanted(): boolean {
    return this.#leader === null && (this.#reader !== null || this.#siblings.some((sibling) => sibling.#reader !== null));
  }

  /** The next token, once it is there; null behind the last one. Throws what the task failed with. */
  async next(): Promise<GeneratedToken | null> {
    this.throwIfFailed();
    if (this.#ready.length === 0 && this.#finishReason === null) {
      await new Promise<void>((resolve) => {
        this.#reader = resolve;
        this.ask();
        this.#leader?.ask();
      });
      this.throwIfFailed();
    }
    return this.#ready.shift() ?? null;
  }

  override chunks(): readonly SequenceChunk[] {
    const [chunk] = super.chunks();
    if (this.#draft.length === 0) return [chunk];
    const tokens = new Uint32Array(chunk.tokens.length + this.#draft.length);
    tokens.set(chunk.tokens);
    tokens.set(this.#draft, chunk.tokens.length);
    return [{ ...chunk, tokens, logits: 'all' }];
  }

  override nextTokens(most: number): number {
    this.#draft = this.decoding ? this.#proposeDraft(most - 1) : new Uint32Array(0);
    return this.#draft.length > 0 ? 1 + this.#draft.length : super.nextTokens(most);
  }

  override prepare(numTokens: number): boolean {
    if (this.#draft.length === 0) return super.prepare(numTokens);
    const start = this.cache.historyLength;
    // Without room for drafts there may be room for the token they follow.
    if (this.cache.resize(start + numTokens, start)) return super.prepareUpTo(start + 1);
    this.#draft = new Uint32Array(0);
    return super.prepare(1);
  }

  override submitted(): void {
    // What is behind the first draft that is not right is forgotten: nothing is told before that is known.
    if (this.#draft.length === 0) super.submitted();
  }

  accept(rows: readonly (readonly Float32Array[])[]): void {
    const [logits] = rows;
    if (logits.length === 0) return;
    if (this.#draft.length > 0) this.#acceptDraft(logits);
    else this.#choose(logits[0]);
    for (const sibling of this.#siblings.splice(0)) sibling.#forkOff(this, logits[0]);
    this.#endIfFinished();
  }

  report(): GenerationReport {
    const { counts, promptLength, firstOpened } = this;
    return {
      promptTokens: promptLength,
      ...counts,
      generatedTokens: this.#generated,
      draftedTokens: this.#drafts.proposed,
      acceptedDrafts: this.#drafts.accepted,
      groups: firstOpened === null ? [] : groupReuse(firstOpened),
      timeToFirstTokenMs: this.#firstTokenMs,
      totalMs: performance.now() - this.#started,
      finishReason: this.#finishReason ?? 'length',
    };
  }

  protected onEnd(): void {
    for (const sibling of this.#siblings.splice(0)) {
      sibling.#leader = null;
      if (sibling.#reader !== null) sibling.ask();
    }
    this.#wakeReader();
  }

  #endIfFinished(): void {
    if (this.#finishReason === null) return;
    // No step is under way: what there is room for beyond the history is nothing that was written.
    const { historyLength } = this.cache;
    this.cache.resize(historyLength, historyLength);
    this.end();
  }

  #proposeDraft(most: number): Uint32Array {
    const speculation = this.#speculation;
    const left = this.#answer.maxNewTokens - this.#generated - 1;
    // Behind the prompt a snapshot is taken, which drafts would be in.
    if (speculation === null || this.#generated === 0 || most <= 0 || left <= 0) return new Uint32Array(0);
    const maxDrafts = Math.min(speculation.maxDrafts, most, left);
    return ngramDrafts(this.known.all, this.known.length, { ...speculation, maxDrafts });
  }

  /** Keeps drafts as long as the sampler would have chosen the same: drawn by the same random numbers, the answer is the same. */
  #acceptDraft(logits: readonly Float32Array[]): void {
    const draft = this.#draft;
    this.#draft = new Uint32Array(0);
    this.#drafts.proposed += draft.length;
    const start = this.cache.historyLength;
    let accepted = 0;
    for (;;) {
      const token = this.#choose(logits[accepted]);
      if (token === null || token !== draft[accepted]) break;
      accepted++;
    }
    this.#drafts.accepted += accepted;
    if (this.ended) return;
    const end = Math.min(start + 1 + accepted, this.known.length);
    this.count(start, start + 1);
    this.write(this.known.slice(start, end), false);
  }

  /** @returns null when that was the last token */
  #choose(logits: Float32Array): number | null {
    // Siblings begin with the same logits, and each may change its own.
    const own = this.#answer.onLogits === undefined ? logits : logits.slice();
    this.#answer.onLogits?.(own, this.ordinal);
    const choice = this.#sampler.choose(own);
    const { stopTokens, maxNewTokens } = this.#answer;
    if (this.#generated++ === 0) this.#firstTokenMs = performance.now() - this.#started;
    this.#ready.push(choice);
    this.known.push(choice.token);
    if (stopTokens?.includes(choice.token)) this.#finishReason = 'stop';
    else if (this.#generated === maxNewTokens) this.#finishReason = 'length';
    this.#wakeReader();
    return this.#finishReason === null ? choice.token : null;
  }

  #forkOff(leader: AnswerTask, logits: Float32Array): void {
    this.#leader = null;
    if (this.ended) return;
    const cache = leader.active ? leader.cache.fork() : null;
    // Without room it comes in as any other, and finds the prompt in the cache.
    if (cache === null) return;
    this.adopt(OpenedReuse.forkOf(leader.requireOpened(), cache));
    this.counts.reusedTokens = this.promptLength;
    this.#choose(logits);
    this.#endIfFinished();
  }

  #wakeReader(): void {
    this.#reader?.();
    this.#reader = null;
  }
}
