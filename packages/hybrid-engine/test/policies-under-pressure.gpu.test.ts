import { dropPage } from '@bufferwise/cache-manager/testing';
import type { ReusePolicy } from '@bufferwise/core-policy';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { HybridEngine, type HybridEngineOptions } from '../src/engine/hybrid-engine.ts';
import { ask, ColdAnswers, expectClean, expectSame } from './support/answers.ts';
import { oracleModel, type SmallModel } from './support/small-models.ts';

vi.setConfig({ testTimeout: 600_000, hookTimeout: 240_000 });

const device = await requestTestDevice();
const TOKENS_PER_BLOCK = 8;

/** Policies by role, or by layer and role. */
type Mix = Readonly<Record<string, ReusePolicy>>;

const CASES: readonly [string, SmallModel, Mix][] = [
  ['granitehybrid with optional state', oracleModel('granitehybrid-101'), { ssm_state: 'optional', conv_state: 'optional' }],
  ['gemma3 with an optional and a private window', oracleModel('gemma3-101'), { '3.value': 'optional', '4.key': 'private' }],
];

describe.each(CASES)('of %s', (_, small, policies) => {
  const cold = new ColdAnswers(small, device);
  const make = ({ cache, ...options }: Partial<HybridEngineOptions> = {}) =>
    HybridEngine.create({
      model: small.model,
      device,
      chunkTokens: 16,
      stepTokens: 64,
      cache: { tokensPerBlock: TOKENS_PER_BLOCK, deviceBytes: 24 << 20, policies, ...cache },
      debugChecks: true,
      ...options,
    });
  let engine: HybridEngine;
  beforeAll(async () => {
    engine = await make();
  });
  afterEach(() => expectClean(engine));
  afterAll(async () => {
    await engine.close();
    await cold.close();
  });

  /** Prompts of many lengths; some have a beginning in common. */
  const prompts = Array.from({ length: 16 }, (__, i) => [
    ...small.text.slice(0, 12 * (i % 4)),
    ...small.text.slice(10 * i, 10 * i + 3 + 5 * (i % 5)),
  ]);
  const expectColdAnswers = async (by: HybridEngine, of: readonly (readonly number[])[], maxNewTokens = 3) => {
    const found = await Promise.all(of.map((prompt) => ask(by, { prompt, maxNewTokens })));
    for (const [i, prompt] of of.entries()) expectSame(found[i], await cold.to({ prompt, maxNewTokens }), `prompt ${i}`);
    return found;
  };

  it('answers are those of a cold cache whatever pages are lost in between', async () => {
    const prompt = small.text.slice(0, 61);
    const request = { prompt, maxNewTokens: 2 };
    const groups = engine.manager.bufferGrouping.length;
    const loss = fc.record({ groupId: fc.nat(groups - 1), block: fc.nat(7), length: fc.integer({ min: 1, max: 61 }) });
    let lost = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(loss, { minLength: 1, maxLength: 6 }), fc.nat(6), async (losses, shorter) => {
        for (const { groupId, block, length } of losses) {
          const isState = engine.manager.lifecycles.get(groupId as never).kind === 'ssm';
          const tokens = isState ? prompt.slice(0, length) : prompt;
          const at = isState ? Math.ceil(length / TOKENS_PER_BLOCK) - 1 : block;
          if (dropPage(engine.manager, { tokens, block: at, groupId })) lost++;
        }
        for (const each of [prompt, [...prompt.slice(0, 60 - shorter), 5, 6]]) {
          const found = await ask(engine, { ...request, prompt: each });
          expectSame(found, await cold.to({ ...request, prompt: each }));
        }
        expect(engine.statistics().openRequests).toBe(0);
      }),
      { numRuns: Number(process.env.BUFFERWISE_PROPERTY_RUNS ?? 12), endOnFailure: true },
    );
    expect(lost).toBeGreaterThan(0);
  });

  it.each([1, 2, 7, 16])('%i requests at a time get the answers that each gets alone, cold and warm', async (count) => {
    for (let round = 0; round < 2; round++) await expectColdAnswers(engine, prompts.slice(0, count));
  });

  it('eight times the same prompt at once has one answer', async () => {
    for (let round = 0; round < 2; round++) await expectColdAnswers(engine, new Array(8).fill(small.text.slice(0, 33)));
  });

  it('drafts change no answer, warm and cold', async () => {
    const drafting = await make({ speculation: { maxDrafts: 3 } });
    const twice = [...small.text.slice(0, 17), ...small.text.slice(0, 17)];
    for (let round = 0; round < 2; round++) {
      const found = await Promise.all([twice, prompts[7]].map((prompt) => drafting.complete({ prompt, maxNewTokens: 8 })));
      expect(found.map(({ tokens }) => tokens)).toEqual([
        (await cold.to({ prompt: twice, maxNewTokens: 8 })).tokens,
        (await cold.to({ prompt: prompts[7], maxNewTokens: 8 })).tokens,
      ]);
    }
    await expectClean(drafting);
    await drafting.close();
  });

  it('a beam search finds the same, warm and cold, and alone or among others', async () => {
    const search = () => engine.beamSearch({ prompt: small.text.slice(0, 37), beamWidth: 3, maxNewTokens: 3 });
    const first = await search();
    const [again] = await Promise.all([search(), expectColdAnswers(engine, prompts.slice(3, 6))]);
    const tokens = ({ answers }: Awaited<ReturnType<typeof search>>) => answers.map((answer) => answer.tokens);
    expect(tokens(again)).toEqual(tokens(first));
    const greedy = await engine.beamSearch({ prompt: small.text.slice(0, 37), beamWidth: 1, maxNewTokens: 3 });
    expect(tokens(greedy)).toEqual([(await cold.to({ prompt: small.text.slice(0, 37), maxNewTokens: 3 })).tokens]);
  });

  it.each([0, 16 << 20])('those that make way are answered as ever, with %i bytes of host memory', async (hostBytes) => {
    const crowded = await make({ cache: { hostBytes, maxUtilForResume: 1 } });
    const holder = crowded.manager.createKvCache();
    await holder.resume();
    const { poolGroup } = crowded.manager.layout.bufferAttr(small.model.description.layers.findLastIndex(isFullAttention), 'key');
    // What is left is room for two of the four at a time.
    const capacity = (crowded.storage()[poolGroup].available - 16) * TOKENS_PER_BLOCK;
    expect(holder.resize(capacity, capacity)).toBe(true);
    const strangers = [0, 1, 2, 3].map((i) => small.text.slice(20 * i, 20 * i + 52));
    for (let round = 0; round < 2; round++) await expectColdAnswers(crowded, strangers, 12);
    const { numSuspensions, numReleases } = crowded.preemptions;
    expect(numSuspensions + numReleases).toBeGreaterThan(0);
    holder.close();
    await expectClean(crowded);
    await crowded.close();
  });
});

function isFullAttention({ mixer }: SmallModel['model']['description']['layers'][number]): boolean {
  return mixer.kind === 'attention' && mixer.windowSize === undefined;
}
