import type { ReuseScope } from '@bufferwise/cache-manager';
import type { GeneratedToken, GenerationReport, HybridEngine } from '@bufferwise/hybrid-engine';
import type { PromptTokens } from '../chat/chat-prompt.ts';
import type { ServedModel } from '../model/served-model.ts';
import type { AnswerOrder } from './answer-order.ts';
import { AnswerText, type TextPiece } from './answer-text.ts';
import { LogitEdits } from './logit-edits.ts';
import { type LikelyToken, topTokens } from './top-tokens.ts';

/** What answers prompts. Another engine, or one on another machine, can stand in here. */
export type AnswerEngine = Pick<HybridEngine, 'generateSeveral'>;

export type FinishReason = 'stop' | 'length';

/** Is told what happens while answers are given. */
export interface AnswerObserver {
  /** @param gapMs milliseconds since the token before; null for the first one, whose time counts from the request on */
  onToken(gapMs: number | null, sinceStartMs: number): void;
  /** How an answer ended, and what it cost. */
  onEnd(finishReason: FinishReason | 'failed', report: GenerationReport): void;
}

export interface AnswerJob {
  readonly prompt: PromptTokens;
  readonly order: AnswerOrder;
  /** Tokens of each answer at most. */
  readonly maxTokens: number;
  /** Where each answer ends, the request's own and those of the chat template. */
  readonly stops: readonly string[];
  readonly scope: ReuseScope | undefined;
  readonly signal: AbortSignal;
  /** Is given an answer piece by piece; the answer waits for it. */
  onPiece(answer: number, piece: TextPiece): void | Promise<void>;
}

/** What all answers to one prompt came to. */
export interface PromptOutcome {
  /** One an answer. */
  readonly finishReasons: readonly FinishReason[];
  readonly promptTokens: number;
  /** Tokens of the prompt that were in the cache. */
  readonly cachedTokens: number;
  /** Tokens of all answers, those that ended them included. */
  readonly completionTokens: number;
}

/** Answers one prompt, as often as the order says. All answers are read at the same time; when one fails the others end, too. */
export class PromptAnswers {
  readonly #model: ServedModel;
  readonly #job: AnswerJob;
  readonly #observer: AnswerObserver;
  readonly #edits: readonly LogitEdits[];
  /** Of each answer the most likely tokens at choices that were not read yet: drafts make several at a time. */
  readonly #top: (readonly LikelyToken[])[][];
  readonly #reports: (GenerationReport | undefined)[] = [];
  readonly #startedAt = performance.now();
  readonly #steps: readonly AsyncGenerator<GeneratedToken, GenerationReport, void>[];

  /** @throws {EngineError} on a request that can never be answered */
  constructor(engine: AnswerEngine, model: ServedModel, job: AnswerJob, observer: AnswerObserver) {
    const { order, prompt, maxTokens, scope, signal } = job;
    this.#model = model;
    this.#job = job;
    this.#observer = observer;
    const isEdited = LogitEdits.areAsked(order.edits);
    this.#edits = isEdited ? Array.from({ length: order.numAnswers }, () => new LogitEdits(order.edits)) : [];
    this.#top = Array.from({ length: order.numAnswers }, () => []);
    const looks = isEdited || this.#numTopTokens > 0;
    this.#steps = engine.generateSeveral(
      {
        prompt: prompt.tokens,
        turnBorders: prompt.turnBorders,
        maxNewTokens: maxTokens,
        sampling: order.sampling,
        stopTokens: order.ignoreEnd ? [] : model.endTokens,
        priority: order.priority,
        // What was said so far is known only token by token.
        ...(isEdited && { speculate: false }),
        ...(scope !== undefined && { scope }),
        ...(looks && { onLogits: (logits, answer) => this.#look(logits, answer) }),
        signal,
        onReport: (report, answer) => {
          this.#reports[answer] = report;
        },
      },
      order.numAnswers,
    );
  }

  /** Reads all answers to their ends. Throws what the engine or `onPiece` throws, when nothing is under way any more. */
  async read(cancel: (reason: Error) => void): Promise<PromptOutcome> {
    const outcomes = await Promise.allSettled(
      this.#steps.map((steps, answer) =>
        this.#readOne(steps, answer).catch((error) => {
          cancel(error as Error);
          throw error;
        }),
      ),
    );
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    return {
      finishReasons: outcomes.map((outcome) => (outcome as PromiseFulfilledResult<FinishReason>).value),
      promptTokens: this.#job.prompt.tokens.length,
      cachedTokens: this.#reports[0]?.reusedTokens ?? 0,
      completionTokens: this.#reports.reduce((sum, report) => sum + (report?.generatedTokens ?? 0), 0),
    };
  }

  async #readOne(steps: AsyncGenerator<GeneratedToken, GenerationReport, void>, answer: number): Promise<FinishReason> {
    let finishReason: FinishReason | 'failed' = 'failed';
    try {
      finishReason = await this.#speak(steps, answer);
      return finishReason;
    } finally {
      await steps.return(undefined as never);
      const report = this.#reports[answer];
      if (report !== undefined) this.#observer.onEnd(finishReason, report);
    }
  }

  async #speak(steps: AsyncGenerator<GeneratedToken, GenerationReport, void>, answer: number): Promise<FinishReason> {
    const { stops, onPiece, signal } = this.#job;
    const { tokenizer } = this.#model.engineModel;
    const text = new AnswerText(tokenizer, stops);
    let lastAt: number | null = null;
    for (;;) {
      const next = await steps.next();
      if (next.done) {
        await onPiece(answer, text.end());
        return text.stopped ? 'stop' : next.value.finishReason;
      }
      const now = performance.now();
      this.#observer.onToken(lastAt === null ? null : now - lastAt, now - this.#startedAt);
      lastAt = now;
      this.#edits[answer]?.said(next.value.token);
      const top = this.#top[answer].shift() ?? [];
      if (this.#isEnd(next.value.token)) continue;
      const piece = text.push(next.value, top);
      if (piece.text !== '' || piece.tokens.length > 0) await onPiece(answer, piece);
      signal.throwIfAborted();
      if (text.stopped) return 'stop';
    }
  }

  #isEnd(token: number): boolean {
    return !this.#job.order.ignoreEnd && this.#model.endTokens.includes(token);
  }

  #look(logits: Float32Array, answer: number): void {
    this.#edits[answer]?.apply(logits);
    if (this.#numTopTokens > 0) this.#top[answer].push(topTokens(logits, this.#numTopTokens));
  }

  get #numTopTokens(): number {
    return this.#job.order.numTopTokens ?? 0;
  }
}
