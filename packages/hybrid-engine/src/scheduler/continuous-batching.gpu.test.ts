import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import fc from 'fast-check';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import type { EngineCacheOptions } from '../engine/cache-config.ts';
import type { GenerationRequest } from '../engine/generation.ts';
import { HybridEngine, type HybridEngineOptions } from '../engine/hybrid-engine.ts';
import { nextTask } from '../engine/next-task.ts';
import { readModel } from '../model/model.ts';
import { type ExpectedAnswer, whalerAnswers, whalerFiles } from '../model/testing/whaler-files.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 });

const device = await requestTestDevice();
const model = readModel(whalerFiles());
const { ids } = whalerAnswers().find(({ name }) => name === 'long') as ExpectedAnswer;

const make = (options: Partial<HybridEngineOptions> = {}) =>
  HybridEngine.create({ model, device, chunkTokens: 32, debugChecks: true, ...options });

const roomy = await make();
afterAll(() => roomy.close());

/** Prompts of many lengths; some have a beginning in common. */
const PROMPTS = Array.from({ length: 16 }, (_, i) => [
  ...ids.slice(0, 20 * (i % 4)),
  ...ids.slice(30 * i, 30 * i + 3 + 7 * (i % 5)),
]);
const request = (prompt: readonly number[], more: Partial<GenerationRequest> = {}): GenerationRequest => ({
  prompt,
  maxNewTokens: 6,
  ...more,
});

const alone = new Map<string, number[]>();
/** What the model answers when nobody else is there and nothing is reused. */
async function coldAnswer(prompt: readonly number[], more: Partial<GenerationRequest> = {}): Promise<number[]> {
  const key = JSON.stringify([prompt, more]);
  const known = alone.get(key);
  if (known !== undefined) return known;
  const { tokens } = await roomy.complete(request(prompt, { lookup: false, publish: false, ...more }));
  alone.set(key, tokens);
  return tokens;
}
const coldAnswers = async (prompts: readonly (readonly number[])[], more: Partial<GenerationRequest> = {}) => {
  const answers: number[][] = [];
  for (const prompt of prompts) answers.push(await coldAnswer(prompt, more));
  return answers;
};

/** Expects that nobody holds anything, and that nothing is left behind when all is forgotten. */
async function expectClean(engine: HybridEngine): Promise<void> {
  expect(engine.statistics().openRequests).toBe(0);
  engine.manager.clearReusableBlocks();
  await engine.manager.settled();
  for (const { free, total } of engine.storage()) expect(free).toBe(total);
}

describe('requests at the same time give the answers that each gives alone', () => {
  afterEach(() => expectClean(roomy));

  it.each([[1], [2], [5], [16]])('when there are %d', async (count) => {
    const prompts = PROMPTS.slice(0, count);
    const cold = await coldAnswers(prompts);
    const together = await Promise.all(prompts.map((prompt) => roomy.complete(request(prompt))));
    expect(together.map(({ tokens }) => tokens)).toEqual(cold);
  });

  it('when a step has room for less than they want', async () => {
    const narrow = await make({ stepTokens: 7 });
    const prompts = PROMPTS.slice(0, 9);
    const together = await Promise.all(prompts.map((prompt) => narrow.complete(request(prompt))));
    expect(together.map(({ tokens }) => tokens)).toEqual(await coldAnswers(prompts));
    await expectClean(narrow);
    await narrow.close();
  });

  it('when only two of them may be on the device', async () => {
    const two = await make({ maxActive: 2 });
    const open: number[] = [];
    const together = await Promise.all(
      PROMPTS.slice(0, 6).map((prompt) =>
        two.complete(request(prompt, { onLogits: () => open.push(two.statistics().openRequests) })),
      ),
    );
    expect(together.map(({ tokens }) => tokens)).toEqual(await coldAnswers(PROMPTS.slice(0, 6)));
    await expectClean(two);
    await two.close();
  });
});

/**
 * An engine with so many blocks of 16 tokens for full attention: a request of the test's own holds the rest. Pools have no fewer
 * pages than a grain of memory does, which is more than there is time for here.
 */
async function crowded(blocks: number, options: Partial<HybridEngineOptions> = {}) {
  const engine = await make({ chunkTokens: 16, ...options, cache: { ...options.cache, maxUtilForResume: 1 } });
  const holder = engine.manager.createKvCache();
  await holder.resume();
  const { available } = engine.storage()[engine.manager.layout.bufferAttr(3, 'key').poolGroup];
  const capacity = (available - blocks) * engine.manager.layout.tokensPerBlock;
  expect(holder.resize(capacity, capacity)).toBe(true);
  const close = async () => {
    holder.close();
    await expectClean(engine);
    await engine.close();
  };
  return { engine, close };
}

/** Prompts of one length that have nothing in common. */
const strangers = (count: number, length: number) =>
  Array.from({ length: count }, (_, i) => Array.from({ length }, (_, at) => ids[(at * 7 + i * 13) % ids.length]));

describe('when memory is short', () => {
  it.each<[string, EngineCacheOptions]>([
    ['those that make way are computed anew', {}],
    ['those that make way wait in host memory', { hostBytes: 64 << 20 }],
  ])('%s, and all answers are as ever', async (_, cache) => {
    const { engine, close } = await crowded(8, { cache });
    const prompts = strangers(4, 60);
    const together = await Promise.all(prompts.map((prompt) => engine.complete(request(prompt, { maxNewTokens: 20 }))));
    expect(together.map(({ tokens }) => tokens)).toEqual(await coldAnswers(prompts, { maxNewTokens: 20 }));
    const { numSuspensions, numReleases } = engine.preemptions;
    expect(cache.hostBytes === undefined ? numReleases : numSuspensions).toBeGreaterThan(0);
    expect(together.some(({ report }) => report.preemptions > 0)).toBe(true);
    expect(together[0].report.preemptions).toBe(0);
    await close();
  });

  it('a request is refused when there is nobody left to make way', async () => {
    const { engine, close } = await crowded(3);
    const [prompt] = strangers(1, 60);
    await expect(engine.complete(request(prompt))).rejects.toMatchObject({ code: 'cache-full' });
    expect((await engine.complete(request(prompt.slice(0, 40)))).tokens).toEqual(await coldAnswer(prompt.slice(0, 40)));
    await close();
  });
});

describe('of requests with different priorities', () => {
  it('the more urgent one is answered first, although it came last', async () => {
    const engine = await make({ maxActive: 1 });
    const order: string[] = [];
    const ask = (name: string, priority: number) =>
      engine.complete(request(PROMPTS[4], { priority, scope: { salt: priority + 10 } })).then(({ tokens }) => {
        order.push(name);
        return tokens;
      });
    const running = [ask('low', -1), ask('middle', 0), ask('middle too', 0)];
    for (let turn = 0; turn < 6; turn++) await nextTask();
    running.push(ask('high', 5));
    const answers = await Promise.all(running);
    expect(order).toEqual(['high', 'middle', 'middle too', 'low']);
    expect(new Set(answers.map(String))).toEqual(new Set([String(await coldAnswer(PROMPTS[4]))]));
    await expectClean(engine);
    await engine.close();
  });
});

describe('a reader who is slow', () => {
  it('costs others nothing but his pages, and these only as long as nobody needs them', async () => {
    const { engine, close } = await crowded(7);
    const [prompt, other] = strangers(2, 80);
    const slow = engine.generate(request(prompt));
    const rest = [((await slow.next()).value as { token: number }).token];
    expect((await engine.complete(request(other))).tokens).toEqual(await coldAnswer(other));
    for await (const { token } of slow) rest.push(token);
    expect(rest).toEqual(await coldAnswer(prompt));
    expect(engine.preemptions.numReleases).toBe(1);
    await close();
  });
});

describe('several answers to one prompt', () => {
  afterEach(() => expectClean(roomy));
  const sampling = { temperature: 1, seed: 11 };

  it('are those of as many requests, and the prompt is computed once', async () => {
    const before = roomy.costs.numTokens;
    const prompt = ids.slice(0, 77);
    const answers = await roomy.completeSeveral(request(prompt, { sampling }), 5);
    expect(roomy.costs.numTokens - before).toBe(77 + 5 * 5);
    const single: number[][] = [];
    for (let i = 0; i < 5; i++) single.push(await coldAnswer(prompt, { sampling: { ...sampling, seed: 11 + i } }));
    expect(answers.map(({ tokens }) => tokens)).toEqual(single);
    expect(answers.map(({ report }) => report.computedTokens)).toEqual([77, 0, 0, 0, 0]);
  });

  it('may each be changed by the caller, and each tell what it cost', async () => {
    const costs = new Map<number, number>();
    const forced = [101, 202, 303];
    const answers = await roomy.completeSeveral(
      request(ids.slice(0, 20), {
        onLogits: (logits, answer) => {
          const wanted = logits[forced[answer]];
          logits.fill(Number.NEGATIVE_INFINITY);
          logits[forced[answer]] = wanted;
        },
        onReport: ({ generatedTokens }, answer) => costs.set(answer, generatedTokens),
      }),
      3,
    );
    expect(answers.map(({ tokens }) => new Set(tokens))).toEqual(forced.map((token) => new Set([token])));
    expect([...costs].sort()).toEqual(answers.map(({ tokens }, i) => [i, tokens.length]));
  });

  it('are counted while they are under way', async () => {
    const engine = await make({ maxActive: 1 });
    expect(engine.load).toEqual({ active: 0, waiting: 0 });
    const loads: { active: number; waiting: number }[] = [];
    const [one, two] = strangers(2, 50);
    await Promise.all([one, two].map((prompt) => engine.complete(request(prompt, { onLogits: () => loads.push(engine.load) }))));
    expect(loads).toContainEqual({ active: 1, waiting: 1 });
    expect(engine.load).toEqual({ active: 0, waiting: 0 });
    await engine.close();
  });

  it('go on when the first one is given up', async () => {
    const prompt = ids.slice(0, 50);
    const [first, second, third] = roomy.generateSeveral(request(prompt, { sampling }), 3);
    const wanted = second.next();
    await first.next();
    await first.return(undefined as never);
    const tokens = [((await wanted).value as { token: number }).token];
    for await (const { token } of second) tokens.push(token);
    expect(tokens).toEqual(await coldAnswer(prompt, { sampling: { ...sampling, seed: 12 } }));
    const others: number[] = [];
    for await (const { token } of third) others.push(token);
    expect(others).toEqual(await coldAnswer(prompt, { sampling: { ...sampling, seed: 13 } }));
  });

  it('end by a signal that came before they were read, and cost nothing when nobody reads them', async () => {
    const before = roomy.costs.numSteps;
    const controller = new AbortController();
    const [first, second] = roomy.generateSeveral(request(ids.slice(0, 30), { signal: controller.signal }), 2);
    controller.abort(new Error('never mind'));
    await expect(second.next()).rejects.toThrow('never mind');
    await expect(first.next()).rejects.toThrow('never mind');
    roomy.generateSeveral(request(ids.slice(0, 30)), 3);
    await expect(roomy.completeSeveral(request([1], { sampling: { topP: 0 } }), 2)).rejects.toMatchObject({ option: 'topP' });
    expect(roomy.costs.numSteps).toBe(before);
    expect(roomy.statistics().openRequests).toBe(0);
  });

  it('that are not read by then end when the engine is closed', async () => {
    const engine = await make();
    const answers = engine.generateSeveral(request(ids.slice(0, 30)), 3);
    await answers[1].next();
    await engine.close();
    for (const answer of answers) await expect(answer.next()).rejects.toMatchObject({ code: 'engine-closed' });
  });

  it('come without forks, too, where there is no room for them', async () => {
    const { engine, close } = await crowded(4);
    const [prompt] = strangers(1, 50);
    const answers = await engine.completeSeveral(request(prompt, { sampling }), 4);
    const single: number[][] = [];
    for (let i = 0; i < 4; i++) single.push(await coldAnswer(prompt, { sampling: { ...sampling, seed: 11 + i } }));
    expect(answers.map(({ tokens }) => tokens)).toEqual(single);
    await close();
  });
});

describe('drafts change no token', () => {
  // Said twice, so that there is something to guess from.
  const repeating = [[...ids.slice(0, 24), ...ids.slice(0, 24)], [...ids.slice(50, 60), ...ids.slice(50, 57)], ids.slice(0, 90)];
  const more = { maxNewTokens: 24 };

  it.each([[1], [4], [7]])(
    'when up to %d are guessed at a time, warm and cold, together and with snapshots behind them',
    async (maxDrafts) => {
      const engine = await make({ speculation: { maxDrafts } });
      const cold = await coldAnswers(repeating, more);
      const reports = [];
      for (let round = 0; round < 2; round++) {
        const answers = await Promise.all(repeating.map((prompt) => engine.complete(request(prompt, more))));
        expect(answers.map(({ tokens }) => tokens)).toEqual(cold);
        reports.push(...answers.map(({ report }) => report));
      }
      const accepted = reports.reduce((sum, { acceptedDrafts }) => sum + acceptedDrafts, 0);
      expect(accepted).toBeGreaterThan(0);
      expect(reports.reduce((sum, { draftedTokens }) => sum + draftedTokens, 0)).toBeGreaterThan(accepted);
      // The state at the end of an answer is one that others go on from.
      const longer = [...repeating[0], ...cold[0].slice(0, -1), 5];
      const next = await engine.complete(request(longer, more));
      expect(next.report.reusedTokens).toBe(repeating[0].length + 23);
      expect(next.tokens).toEqual(await coldAnswer(longer, more));
      await expectClean(engine);
      await engine.close();
    },
  );

  it('when tokens are drawn, as the same random numbers are', async () => {
    const engine = await make({ speculation: { maxDrafts: 3 } });
    const drawn = { ...more, sampling: { temperature: 0.7, topK: 4, seed: 3 } };
    const { tokens, report } = await engine.complete(request(repeating[0], drawn));
    expect(tokens).toEqual(await coldAnswer(repeating[0], drawn));
    expect(report.draftedTokens).toBeGreaterThan(0);
    const without = await engine.complete(request(repeating[0], { ...drawn, speculate: false }));
    expect(without).toMatchObject({ tokens, report: { draftedTokens: 0 } });
    await expectClean(engine);
    await engine.close();
  });

  it('when requests make way in the middle, and when beams and forks share the steps', async () => {
    const { engine, close } = await crowded(10, { speculation: { maxDrafts: 3 }, cache: { hostBytes: 32 << 20 } });
    const [a, b] = await Promise.all(repeating.slice(0, 2).map((prompt) => engine.complete(request(prompt, more))));
    expect([a.tokens, b.tokens]).toEqual(await coldAnswers(repeating.slice(0, 2), more));
    const [several, found, single] = await Promise.all([
      engine.completeSeveral(request(repeating[1], more), 3),
      engine.beamSearch({ prompt: repeating[0], beamWidth: 2, maxNewTokens: 5 }),
      engine.complete(request(repeating[2], more)),
    ]);
    expect(several.map(({ tokens }) => tokens)).toEqual(new Array(3).fill(await coldAnswer(repeating[1], more)));
    expect(found.answers).toEqual(
      (await roomy.beamSearch({ prompt: repeating[0], beamWidth: 2, maxNewTokens: 5 })).answers.map((answer) => ({
        ...answer,
        logProbability: expect.closeTo(answer.logProbability, 3),
      })),
    );
    expect(single.tokens).toEqual(await coldAnswer(repeating[2], more));
    await close();
  });
});

describe('a beam search', () => {
  afterEach(() => expectClean(roomy));
  const prompt = ids.slice(0, 45);

  /** The same search by answering each beam anew in every round. */
  async function searched(beamWidth: number, maxNewTokens: number): Promise<{ tokens: number[]; logProbability: number }[]> {
    let beams: { tokens: number[]; logProbability: number }[] = [{ tokens: [], logProbability: 0 }];
    for (let round = 0; round < maxNewTokens; round++) {
      const next: typeof beams = [];
      for (const beam of beams) {
        let logits = new Float32Array(0);
        const onLogits = (row: Float32Array) => {
          logits = row.slice();
        };
        await roomy.complete(request([...prompt, ...beam.tokens], { maxNewTokens: 1, lookup: false, publish: false, onLogits }));
        const highest = logits.reduce((a, b) => Math.max(a, b));
        const total = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - highest), 0));
        logits.forEach((logit, token) => {
          next.push({ tokens: [...beam.tokens, token], logProbability: beam.logProbability + logit - highest - total });
        });
      }
      beams = next.sort((a, b) => b.logProbability - a.logProbability).slice(0, beamWidth);
    }
    return beams;
  }

  it.each([[1], [3]])('of width %d finds what a search without a cache finds', async (beamWidth) => {
    const { answers } = await roomy.beamSearch({ prompt, beamWidth, maxNewTokens: 4 });
    const expected = await searched(beamWidth, 4);
    expect(answers.map(({ tokens }) => tokens)).toEqual(expected.map(({ tokens }) => tokens));
    answers.forEach(({ logProbability }, i) => {
      expect(logProbability).toBeCloseTo(expected[i].logProbability, 3);
    });
  });

  it('of width 1 is greedy, warm and cold', async () => {
    const greedy = await coldAnswer(prompt);
    for (let again = 0; again < 2; again++) {
      const { answers, reusedTokens } = await roomy.beamSearch({ prompt, beamWidth: 1, maxNewTokens: 6 });
      expect(answers.map(({ tokens }) => tokens)).toEqual([greedy]);
      expect(reusedTokens).toBe(again * 44);
    }
  });

  it('shares its steps with others, and makes way for them', async () => {
    const { engine, close } = await crowded(9);
    const [long] = strangers(1, 70);
    const search = (by: HybridEngine) => by.beamSearch({ prompt, beamWidth: 3, maxNewTokens: 4 });
    const [found, other, urgent] = await Promise.all([
      search(engine),
      engine.complete(request(long)),
      engine.complete(request(long.slice(1), { priority: 1 })),
    ]);
    expect(found.answers.map(({ tokens }) => tokens)).toEqual((await search(roomy)).answers.map(({ tokens }) => tokens));
    expect([other.tokens, urgent.tokens]).toEqual(await coldAnswers([long, long.slice(1)]));
    await close();
  });

  it('ends by its signal and holds nothing', async () => {
    const controller = new AbortController();
    const search = roomy.beamSearch({ prompt, beamWidth: 3, maxNewTokens: 200, signal: controller.signal });
    for (let turn = 0; turn < 8; turn++) await nextTask();
    controller.abort(new Error('enough'));
    await expect(search).rejects.toThrow('enough');
  });
});

describe('when the device is lost', () => {
  it('all requests under way end with an error, and nothing waits for ever', async () => {
    const mortal = await requestTestDevice();
    const engine = await make({ device: mortal });
    const running = [0, 1, 2].map((i) => engine.complete(request(PROMPTS[i + 4], { maxNewTokens: 500 })));
    const outcomes = Promise.allSettled(running);
    for (let turn = 0; turn < 12; turn++) await nextTask();
    mortal.destroy();
    for (const outcome of await outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'device-lost' } });
    await expect(engine.complete(request(PROMPTS[1]))).rejects.toMatchObject({ code: 'device-lost' });
    expect(engine.statistics().openRequests).toBe(0);
    await engine.close();
  });
});

describe('whatever is asked, in whatever order,', () => {
  it('every answer is that of the prompt alone, and nothing is left', async () => {
    const anyRequest = fc.record({
      prompt: fc.constantFrom(...PROMPTS.slice(0, 6)),
      priority: fc.constantFrom(0, 0, 1),
      wait: fc.nat(6),
      leaveAfter: fc.option(fc.integer({ min: 0, max: 3 }), { freq: 4 }),
    });
    const { engine, close } = await crowded(12, { cache: { hostBytes: 4 << 20 }, stepTokens: 24, maxActive: 3 });
    await fc.assert(
      fc.asyncProperty(fc.array(anyRequest, { minLength: 2, maxLength: 7 }), async (requests) => {
        const outcomes = await Promise.all(
          requests.map(async ({ prompt, priority, wait, leaveAfter }) => {
            for (let turn = 0; turn < wait; turn++) await nextTask();
            const tokens: number[] = [];
            for await (const { token } of engine.generate(request(prompt, { priority }))) {
              tokens.push(token);
              if (tokens.length === leaveAfter) break;
            }
            return tokens;
          }),
        );
        for (const [i, tokens] of outcomes.entries()) {
          const whole = await coldAnswer(requests[i].prompt);
          expect(tokens).toEqual(whole.slice(0, tokens.length));
          expect(tokens.length).toBeGreaterThanOrEqual(Math.min(whole.length, requests[i].leaveAfter || whole.length));
        }
        // The test's own, which holds the rest of the memory.
        expect(engine.statistics().openRequests).toBe(1);
      }),
      { numRuns: Number(process.env.BUFFERWISE_PROPERTY_RUNS ?? 8) },
    );
    await close();
  });
});
