import type { InferenceSession, Tensor } from 'onnxruntime-common';

/** An `InferenceSession` that notes what is run, and fails or changes things where a test says so. */
export class WatchedSession implements InferenceSession {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly inputMetadata: readonly InferenceSession.ValueMetadata[];
  readonly outputMetadata: readonly InferenceSession.ValueMetadata[];
  /** Number of tokens of each run. */
  readonly runs: number[] = [];
  /** Runs under way, and the most there were at a time. */
  running = 0;
  mostRunning = 0;
  /** Throws to let a run fail. `number` counts from 1. */
  beforeRun: (number: number) => void | Promise<void> = () => {};
  afterRun: (outputs: Record<string, Tensor>) => Record<string, Tensor> = (outputs) => outputs;
  beforeFeed: (tensor: Tensor) => Tensor = (tensor) => tensor;
  readonly #inner: InferenceSession;

  constructor(inner: InferenceSession) {
    this.#inner = inner;
    this.inputNames = inner.inputNames;
    this.outputNames = inner.outputNames;
    this.inputMetadata = inner.inputMetadata;
    this.outputMetadata = inner.outputMetadata;
  }

  get tokensRun(): number {
    return this.runs.reduce((sum, count) => sum + count, 0);
  }

  async run(feeds: InferenceSession.FeedsType, fetches?: unknown): Promise<InferenceSession.ReturnType> {
    this.running++;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    try {
      this.runs.push((feeds.input_ids as Tensor).dims[1]);
      await this.beforeRun(this.runs.length);
      const fed = Object.fromEntries(Object.entries(feeds).map(([name, tensor]) => [name, this.beforeFeed(tensor as Tensor)]));
      const outputs = await this.#inner.run(fed, fetches as readonly string[]);
      return this.afterRun(outputs as Record<string, Tensor>);
    } finally {
      this.running--;
    }
  }

  release(): Promise<void> {
    return this.#inner.release();
  }

  startProfiling(): void {}

  endProfiling(): void {}
}
