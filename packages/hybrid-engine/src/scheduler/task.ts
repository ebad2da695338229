import type { SequenceChunk } from '../engine/gpu-model.ts';

/**
 * What the scheduler moves: one request with its pages, whatever it makes of them.
 *
 * A task is asked in this order, step by step: `open` until it holds pages on the device; `nextTokens`, `prepare`, `chunks`, `submitted`,
 * `accept` for a step; `release` when its pages are needed by others, after which it is opened again. Whoever made the task ends it.
 */
export interface Task {
  /** Larger ones go first. */
  readonly priority: number;
  /** Ordinal of arrival: of equal priorities the smaller one goes first. */
  readonly arrival: number;
  /** Whether somebody waits for what it computes next. One that nobody waits for keeps its pages as long as others do without. */
  readonly wanted: boolean;
  /** Done or failed: it holds nothing, and is not asked any more. */
  readonly ended: boolean;
  /** Whether its pages are on the device and it can be in a step. */
  readonly active: boolean;
  /** Whether it holds pages anywhere, the claims of a match included. */
  readonly holding: boolean;
  /** Whether its next step computes the one token that it is waiting for, and not what comes before it. */
  readonly decoding: boolean;

  /** Takes its pages onto the device. False: there is no room now; nothing has changed. */
  open(): Promise<boolean>;
  /** How many tokens it would have in a step that has room for `most`, 0 to `most`. */
  nextTokens(most: number): number;
  /** Makes room for so many tokens. False: there is none now; nothing has changed. */
  prepare(numTokens: number): boolean;
  /** What it has prepared for, as rows of the step. */
  chunks(): readonly SequenceChunk[];
  /** The kernels are on the queue: what is copied from now on comes behind them. */
  submitted(): void;
  /** @param rows logits of its chunks, as these asked for them */
  accept(rows: readonly (readonly Float32Array[])[]): void;
  /** Suspends it: what it holds may go to colder tiers. */
  suspend(): void;
  /** Gives its pages back. What it published may be found again; the rest is computed anew. */
  release(): void;
  /** Lets go what it claimed of others, for good: to hold it and to copy from it may take more room than to compute it. False: it has nothing of the kind. */
  forgoReuse(): boolean;
  /** Ends it with an error for whoever waits. */
  fail(error: unknown): void;
}

/** Who goes first of two tasks: negative for `a`. */
export function byRank(a: Task, b: Task): number {
  return b.priority - a.priority || a.arrival - b.arrival;
}
