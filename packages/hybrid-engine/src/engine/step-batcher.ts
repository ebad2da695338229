import type { SequenceChunk } from './gpu-model.ts';
import { nextTask } from './next-task.ts';

/** A chunk on its way through the model. */
export interface PendingChunk {
  /** Settles when the chunk's kernels are on the device's queue: what is ordered from now on comes after them. */
  submitted: Promise<void>;
  /** The logits `[vocabSize] f32` after the chunk's last token. */
  logits: Promise<Float32Array>;
}

interface Waiting {
  chunk: SequenceChunk;
  onSubmitted: () => void;
  onLogits: (logits: Float32Array) => void;
  onError: (error: unknown) => void;
}

/** Runs one step and returns the logits after the last token of each chunk; everything is submitted before it returns. */
export type RunStep = (chunks: readonly SequenceChunk[]) => Promise<readonly Float32Array[]>;

/**
 * Puts the chunks of requests that are ready at the same time into one step. While a step is under way the next chunks
 * gather; a request has one chunk waiting at most, so each is in a step once.
 */
export class StepBatcher {
  readonly #run: RunStep;
  readonly #maxTokens: number;
  #waiting: Waiting[] = [];
  #running = false;

  /** @param maxTokens tokens of one step at most; a chunk has no more */
  constructor(run: RunStep, maxTokens: number) {
    this.#run = run;
    this.#maxTokens = maxTokens;
  }

  add(chunk: SequenceChunk): PendingChunk {
    const entry = { chunk } as Waiting;
    const submitted = new Promise<void>((resolve, reject) => {
      entry.onSubmitted = resolve;
      entry.onError = reject;
    });
    const logits = new Promise<Float32Array>((resolve, reject) => {
      const { onError } = entry;
      entry.onLogits = resolve;
      entry.onError = (error) => {
        onError(error);
        reject(error);
      };
    });
    // Whoever waits for the submission learns of the error there, and may never ask for the logits.
    logits.catch(() => {});
    this.#waiting.push(entry);
    if (!this.#running) void this.#drain();
    return { submitted, logits };
  }

  async #drain(): Promise<void> {
    this.#running = true;
    while (this.#waiting.length > 0) {
      await nextTask();
      await this.#step(this.#take());
    }
    this.#running = false;
  }

  /** The chunks that have waited longest, as many as fit. */
  #take(): Waiting[] {
    let numTokens = 0;
    let count = 0;
    for (const { chunk } of this.#waiting) {
      numTokens += chunk.tokens.length;
      if (count > 0 && numTokens > this.#maxTokens) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  async #step(batch: readonly Waiting[]): Promise<void> {
    try {
      const pending = this.#run(batch.map(({ chunk }) => chunk));
      for (const { onSubmitted } of batch) onSubmitted();
      const logits = await pending;
      for (const [i, { onLogits }] of batch.entries()) onLogits(logits[i]);
    } catch (error) {
      for (const { onError } of batch) onError(error);
    }
  }
}
