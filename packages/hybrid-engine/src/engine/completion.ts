import type { GeneratedToken, GenerationReport } from './generation.ts';

/** An answer that is done. */
export interface Completion {
  readonly tokens: number[];
  /** One a token: natural logarithm of its probability. */
  readonly logProbabilities: number[];
  readonly report: GenerationReport;
}

/** Reads an answer to its end. Throws what reading it throws. */
export async function readToEnd(steps: AsyncGenerator<GeneratedToken, GenerationReport, void>): Promise<Completion> {
  const tokens: number[] = [];
  const logProbabilities: number[] = [];
  for (;;) {
    const next = await steps.next();
    if (next.done) return { tokens, logProbabilities, report: next.value };
    tokens.push(next.value.token);
    logProbabilities.push(next.value.logProbability);
  }
}
