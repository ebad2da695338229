import { dropPage } from '@bufferwise/cache-manager/testing';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { nextTask } from '../src/engine/next-task.ts';
import { dequantiseAll, type GenerationRequest, HybridEngine, ReferenceModel, readModel } from '../src/index.ts';
import { type ExpectedAnswer, whalerAnswers, whalerFiles } from '../src/model/testing/whaler-files.ts';

const device = await requestTestDevice();
const model = readModel(whalerFiles());
const expected = whalerAnswers();

/** Logits of the demo model agree with float32 on the CPU to this much. */
const LOGIT_TOLERANCE = 2e-3;

/** Readers that run side by side. */
const BATCH = 32;

/** Tokens that a reader computes behind its match. `BUFFERWISE_READ_TO_END=1` reads every one to the end. */
const HORIZON = process.env.BUFFERWISE_READ_TO_END === '1' ? Number.POSITIVE_INFINITY : 64;

/** One reader in so many reads to the end of the prompt in any case, and answers it in full. */
const TO_END_EVERY = 16;

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

/** Runs a prompt and keeps the first 32 logits after its last token, as the expected answers do. */
async function answer(engine: HybridEngine, request: GenerationRequest) {
  let lastLogits: Float32Array | undefined;
  const { tokens, report } = await engine.complete({
    ...request,
    onLogits: (logits) => {
      lastLogits ??= logits.slice(0, 32);
    },
  });
  return { tokens, report, lastLogits: lastLogits as Float32Array };
}

function expectLogits(found: Float32Array, wanted: readonly number[], what: string): void {
  const worst = wanted.reduce((largest, value, i) => Math.max(largest, Math.abs(value - found[i])), 0);
  expect(worst, `largest difference of a logit, ${what}`).toBeLessThan(LOGIT_TOLERANCE);
}

describe('the demo model answers as float32 on the CPU does', () => {
  it.each(expected)('from a cold cache: $name', async ({ ids, greedy, lastLogits }) => {
    const engine = await HybridEngine.create({ model, device, debugChecks: true });
    const found = await answer(engine, { prompt: ids, maxNewTokens: greedy.length });
    expect(found.tokens).toEqual(greedy);
    expectLogits(found.lastLogits, lastLogits, 'cold');
    expect(found.report).toMatchObject({ promptTokens: ids.length, reusedTokens: 0, computedTokens: ids.length });
    await engine.close();
  });

  it('whatever the prompts before left in the cache', async () => {
    const engine = await HybridEngine.create({ model, device, debugChecks: true });
    for (const { name, ids, greedy, lastLogits } of [...expected, ...expected]) {
      const found = await answer(engine, { prompt: ids, maxNewTokens: greedy.length });
      expect(found.tokens, name).toEqual(greedy);
      expectLogits(found.lastLogits, lastLogits, name);
      expect(found.report.reusedTokens + found.report.computedTokens).toBe(ids.length);
    }
    await engine.close();
  });
});

describe('the long prompt gives the same answer from every possible match length', async () => {
  const { ids, greedy, lastLogits } = expected.find(({ name }) => name === 'long') as ExpectedAnswer;
  const engine = await HybridEngine.create({ model, device, cache: { deviceBytes: 128 * 2 ** 20, poolRatio: [4, 1, 1] } });
  const groupId = engine.manager.getBufferGroupId(0, 'ssm_state');
  // A border behind every token leaves a snapshot behind every token.
  await engine.complete({ prompt: ids, maxNewTokens: 1, turnBorders: ids.map((_, i) => i + 1) });
  afterAll(() => engine.close());

  /** What the model in plain TypeScript answers after each token of the prompt. */
  const cpu = new ReferenceModel(model.description, dequantiseAll(model));
  const cpuState = cpu.createState();
  const cpuLogits = ids.map((id) => [...cpu.forward([id], cpuState).subarray(0, 32)]);

  const numStarted = () => engine.statistics().requests.started;
  // Each reader claims the furthest snapshot that is left and publishes nothing; then that snapshot goes.
  const read = async (length: number) => {
    const toEnd = length % TO_END_EVERY === 0 || length + HORIZON >= ids.length;
    const prompt = toEnd ? ids : ids.slice(0, length + HORIZON);
    const before = numStarted();
    const reading = answer(engine, { prompt, maxNewTokens: toEnd ? greedy.length : 1, publish: false });
    // It holds what it found once it is on the device.
    while (numStarted() === before) await nextTask();
    const block = Math.ceil(length / engine.manager.layout.tokensPerBlock) - 1;
    if (length > 0) expect(dropPage(engine.manager, { tokens: ids.slice(0, length), block, groupId })).toBe(true);
    return async () => check(length, prompt, toEnd, await reading);
  };
  const check = (length: number, prompt: readonly number[], toEnd: boolean, found: Awaited<ReturnType<typeof answer>>) => {
    const what = `with ${length} tokens reused`;
    expect(found.report, what).toMatchObject({ reusedTokens: length, computedTokens: prompt.length - length });
    expectLogits(found.lastLogits, cpuLogits[prompt.length - 1], what);
    if (!toEnd) return;
    expectLogits(found.lastLogits, lastLogits, what);
    expect(found.tokens, what).toEqual(greedy);
  };
  const batches = Array.from({ length: Math.ceil(ids.length / BATCH) }, (_, i) => {
    const most = ids.length - 1 - i * BATCH;
    return { most, least: Math.max(0, most - BATCH + 1) };
  });
  it.each(batches)('with $most down to $least tokens reused', async ({ most, least }) => {
    const readers: (() => Promise<void>)[] = [];
    for (let length = most; length >= least; length--) readers.push(await read(length));
    for (const finish of readers) await finish();
  });
});
