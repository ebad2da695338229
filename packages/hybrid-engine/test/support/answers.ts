import { checkInvariants } from '@bufferwise/cache-manager/testing';
import { expect } from 'vitest';
import type { GenerationReport, GenerationRequest } from '../../src/engine/generation.ts';
import { HybridEngine, type HybridEngineOptions } from '../../src/engine/hybrid-engine.ts';
import { logSoftmax } from '../../src/sampling/testing/log-softmax.ts';
import type { SmallModel } from './small-models.ts';

/** An answer, with the log-probability of every token behind each choice: a wrong page that changes no token is seen there. */
export interface Answer {
  readonly tokens: readonly number[];
  readonly logProbabilities: readonly number[];
  readonly report: GenerationReport;
}

/** Largest difference of a log-probability: steps of other sizes sum in another order. */
export const TOLERANCE = 1e-3;

export async function ask(engine: HybridEngine, request: GenerationRequest): Promise<Answer> {
  const logProbabilities: number[] = [];
  const { tokens, report } = await engine.complete({
    ...request,
    onLogits: (logits) => {
      for (const value of logSoftmax(logits)) logProbabilities.push(value);
    },
  });
  return { tokens, logProbabilities, report };
}

export function expectSame(found: Answer, expected: Answer, what = ''): void {
  expect(found.tokens, what).toEqual(expected.tokens);
  let largest = 0;
  expected.logProbabilities.forEach((value, i) => {
    const difference = Math.abs(value - found.logProbabilities[i]);
    if (!(difference <= largest)) largest = difference;
  });
  expect(largest, `largest difference of a log-probability, ${what}`).toBeLessThan(TOLERANCE);
}

/** Expects that nobody holds anything, and that every page comes back when all is forgotten. */
export async function expectClean(engine: HybridEngine): Promise<void> {
  expect(engine.statistics().openRequests).toBe(0);
  checkInvariants(engine.manager);
  engine.manager.clearReusableBlocks();
  await engine.manager.settled();
  for (const { free, total } of engine.storage()) expect(free).toBe(total);
}

/** Answers as the model gives them when nobody else is there and nothing is reused; each is computed once. */
export class ColdAnswers {
  readonly #engine: Promise<HybridEngine>;
  readonly #known = new Map<string, Promise<Answer>>();

  constructor({ model }: SmallModel, device: GPUDevice, options: Partial<HybridEngineOptions> = {}) {
    this.#engine = HybridEngine.create({ model, device, chunkTokens: 64, ...options });
  }

  to(request: GenerationRequest): Promise<Answer> {
    const { prompt, maxNewTokens, sampling } = request;
    const key = JSON.stringify([prompt, maxNewTokens, sampling]);
    const known =
      this.#known.get(key) ?? this.#engine.then((engine) => ask(engine, { ...request, lookup: false, publish: false }));
    this.#known.set(key, known);
    return known;
  }

  async close(): Promise<void> {
    await (await this.#engine).close();
  }
}
