import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readGgufModel } from '../gguf/gguf-model.ts';
import { ORACLE_MODELS, ORACLE_TOLERANCE, type OracleModel, oracleAnswers, oracleFile } from '../gguf/testing/oracle-models.ts';
import { logSoftmax } from '../sampling/testing/log-softmax.ts';
import type { GenerationRequest } from './generation.ts';
import { HybridEngine } from './hybrid-engine.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/** Tokens of an answer that is about what came before it. */
const NUM_TOKENS = 12;

const device = await requestTestDevice();

function createEngine(name: OracleModel): Promise<HybridEngine> {
  const model = readGgufModel(oracleFile(name));
  return HybridEngine.create({
    model,
    device,
    chunkTokens: 64,
    cache: { tokensPerBlock: 8, deviceBytes: 32 << 20 },
    debugChecks: true,
  });
}

/** Answers greedily, and keeps the log-probabilities of every token behind each choice. */
async function answer(engine: HybridEngine, request: GenerationRequest) {
  const logProbabilities: number[] = [];
  const { tokens, report } = await engine.complete({
    ...request,
    onLogits: (logits) => logProbabilities.push(...logSoftmax(logits)),
  });
  return { tokens, report, logProbabilities };
}

function largestDifference(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  expect(actual.length).toBe(expected.length);
  let largest = 0;
  for (let i = 0; i < actual.length; i++) {
    const difference = Math.abs(actual[i] - expected[i]);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

describe.each(ORACLE_MODELS)('%s on the device', (name) => {
  const answers = oracleAnswers(name);
  let engine: HybridEngine;
  beforeAll(async () => {
    engine = await createEngine(name);
  });
  afterAll(() => engine.close());

  it.each([0, 1, 2, 3, 4, 5])('answers prompt %i as llama.cpp does, token for token', async (i) => {
    const { prompt, greedy, logProbabilities } = answers[i];
    const found = await answer(engine, { prompt, maxNewTokens: greedy.length, lookup: false, publish: false });
    expect(found.tokens).toEqual(greedy);
    expect(largestDifference(found.logProbabilities, logProbabilities)).toBeLessThan(ORACLE_TOLERANCE[name]);
    expect(found.report.reusedTokens).toBe(0);
  });

  it('answers the same from what the prompts before left in the cache', async () => {
    const reused: number[] = [];
    for (const { prompt, greedy, logProbabilities } of [...answers, ...answers]) {
      const found = await answer(engine, { prompt, maxNewTokens: NUM_TOKENS });
      expect(found.tokens).toEqual(greedy.slice(0, NUM_TOKENS));
      const expected = logProbabilities.subarray(0, found.logProbabilities.length);
      expect(largestDifference(found.logProbabilities, expected)).toBeLessThan(ORACLE_TOLERANCE[name]);
      reused.push(found.report.reusedTokens);
    }
    // The second time around all but the last token of a prompt is there.
    expect(reused.slice(answers.length)).toEqual(answers.map(({ prompt }) => prompt.length - 1));
    expect(Math.max(...reused.slice(0, answers.length))).toBeGreaterThan(0);
  });

  it('answers all prompts at once', async () => {
    const cold = { maxNewTokens: NUM_TOKENS, lookup: false, publish: false };
    const found = await Promise.all(answers.map(({ prompt }) => answer(engine, { prompt, ...cold })));
    expect(found.map(({ tokens }) => tokens)).toEqual(answers.map(({ greedy }) => greedy.slice(0, NUM_TOKENS)));
  });
});
