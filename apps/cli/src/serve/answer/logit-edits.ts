/** How a request wants the choice of tokens changed. */
export interface LogitEditOptions {
  /** What is added to the logits of tokens, by token. */
  readonly bias: ReadonlyMap<number, number>;
  /** Taken off once from every token that the answer has, and once for each time that it has it. */
  readonly presencePenalty: number;
  readonly frequencyPenalty: number;
}

/** Changes the logits of one answer, by what it has said so far. The prompt does not count. */
export class LogitEdits {
  readonly #options: LogitEditOptions;
  readonly #counts = new Map<number, number>();

  constructor(options: LogitEditOptions) {
    this.#options = options;
  }

  /** Whether a request changes anything. */
  static areAsked({ bias, presencePenalty, frequencyPenalty }: LogitEditOptions): boolean {
    return bias.size > 0 || presencePenalty !== 0 || frequencyPenalty !== 0;
  }

  /** @param logits `[vocabSize] f32`, changed */
  apply(logits: Float32Array): void {
    const { bias, presencePenalty, frequencyPenalty } = this.#options;
    for (const [token, value] of bias) logits[token] += value;
    for (const [token, count] of this.#counts) logits[token] -= presencePenalty + frequencyPenalty * count;
  }

  /** The answer has one more token. */
  said(token: number): void {
    this.#counts.set(token, (this.#counts.get(token) ?? 0) + 1);
  }
}
