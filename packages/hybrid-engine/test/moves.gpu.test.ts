import type { KvCache } from '@bufferwise/cache-manager';
import type { ReusePolicy } from '@bufferwise/core-policy';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { readToEnd } from '../src/engine/completion.ts';
import { HybridEngine, type HybridEngineOptions } from '../src/engine/hybrid-engine.ts';
import { readGgufModel } from '../src/gguf/gguf-model.ts';
import { ORACLE_MODELS, type OracleModel, oracleAnswers, oracleFile } from '../src/gguf/testing/oracle-models.ts';
import { expectNothingInVain, TwoWorkers } from './support/two-workers.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const device = await requestTestDevice();
const NUM_TOKENS = 5;
const POLICIES: readonly ReusePolicy[] = ['required', 'optional', 'private'];

const models = new Map(ORACLE_MODELS.map((name) => [name, readGgufModel(oracleFile(name))]));
const longest = (name: OracleModel) => oracleAnswers(name).reduce((a, b) => (b.prompt.length > a.prompt.length ? b : a));

function engine(name: OracleModel, { cache, ...options }: Partial<HybridEngineOptions> = {}): Promise<HybridEngine> {
  return HybridEngine.create({
    model: models.get(name) as never,
    device,
    chunkTokens: 16,
    debugChecks: true,
    ...options,
    cache: { tokensPerBlock: 8, deviceBytes: 24 << 20, ...cache },
  });
}

async function workers(
  name: OracleModel,
  prefill: Partial<HybridEngineOptions> = {},
  decode: Partial<HybridEngineOptions> = prefill,
): Promise<TwoWorkers> {
  return TwoWorkers.of([await engine(name, prefill), await engine(name, decode)]);
}

/** What one worker answers, with nothing to reuse. */
const alone = new Map<string, Promise<number[]>>();
const single = new Map<OracleModel, Promise<HybridEngine>>();
function expected(name: OracleModel, prompt: readonly number[], more: object = {}): Promise<number[]> {
  const key = JSON.stringify([name, prompt, more]);
  const known = alone.get(key);
  if (known !== undefined) return known;
  const one = single.get(name) ?? engine(name);
  single.set(name, one);
  const answer = one
    .then((each) => each.complete({ prompt, maxNewTokens: NUM_TOKENS, lookup: false, publish: false, ...more }))
    .then(({ tokens }) => tokens);
  alone.set(key, answer);
  return answer;
}
afterAll(async () => {
  for (const each of single.values()) await (await each).close();
});

describe.each(ORACLE_MODELS)('%s, read by one worker and answered by another', (name) => {
  it('answers as one worker does, cold and warm, at every end of a block', async () => {
    const pair = await workers(name);
    const { prompt, greedy } = longest(name);
    const whole = await pair.answer({ prompt, maxNewTokens: NUM_TOKENS });
    expect(whole.tokens).toEqual(greedy.slice(0, NUM_TOKENS));
    expectNothingInVain(whole);
    expect(whole.report.computedTokens).toBe(1);
    // Again: what is here is not sent again, and what is there is not computed again.
    const again = await pair.answer({ prompt, maxNewTokens: NUM_TOKENS });
    expect(again.tokens).toEqual(whole.tokens);
    expect(again.transfer.groups.map(({ bytesMoved }) => bytesMoved)).toEqual(again.transfer.groups.map(() => 0));
    expect(again.prefilled).toBe(0);
    // Other prompts with the same beginning.
    for (const length of [2, 9, 16, 17, 18, 31]) {
      const other = [...prompt.slice(0, Math.min(length, prompt.length) - 1), 7];
      const moved = await pair.answer({ prompt: other, maxNewTokens: NUM_TOKENS });
      expect(moved.tokens, `${length} tokens`).toEqual(await expected(name, other));
      expectNothingInVain(moved);
    }
    await pair.close();
  });

  it.each(POLICIES.flatMap((a) => POLICIES.map((b) => [a, b] as const)))(
    'with its first buffers %s and the others %s',
    async (first, second) => {
      const policies = (layerId: number, role: string) => {
        const isFirst = role === 'key' || role === 'ssm_state';
        const policy = isFirst ? first : second;
        // Others would match nothing at all.
        return layerId === 0 && isFirst && first === 'private' && second === 'private' ? 'required' : policy;
      };
      const pair = await workers(name, { cache: { policies } });
      const { prompt } = longest(name);
      const shared = prompt.slice(0, 21);
      await pair.decode.complete({ prompt: shared, maxNewTokens: 3 });
      for (const request of [shared, [...prompt.slice(0, 27), 5]]) {
        const moved = await pair.answer({ prompt: request, maxNewTokens: NUM_TOKENS });
        expect(moved.tokens).toEqual(await expected(name, request));
        expectNothingInVain(moved);
      }
      await pair.close();
    },
  );
});

describe('the other worker', () => {
  const name = 'granitehybrid-101';

  it('draws the same tokens from the same seed', async () => {
    const pair = await workers(name);
    const { prompt } = longest(name);
    for (const seed of [1, 2, 3]) {
      const sampling = { temperature: 1.2, topK: 20, seed };
      const moved = await pair.answer({ prompt, maxNewTokens: NUM_TOKENS, sampling });
      expect(moved.tokens).toEqual(await expected(name, prompt, { sampling }));
    }
    await pair.close();
  });

  it('has blocks of another size', async () => {
    for (const [from, to] of [
      [16, 8],
      [16, 4],
    ]) {
      const pair = await workers('llama-103', { cache: { tokensPerBlock: from } }, { cache: { tokensPerBlock: to } });
      const { prompt, greedy } = longest('llama-103');
      const moved = await pair.answer({ prompt, maxNewTokens: NUM_TOKENS });
      expect(moved.tokens).toEqual(greedy.slice(0, NUM_TOKENS));
      expectNothingInVain(moved);
      await pair.close();
    }
  });

  it('guesses tokens, and keeps replay rings, which move with the request', async () => {
    const speculation = { maxDrafts: 3 };
    const pair = await workers(name, { speculation });
    const { prompt, greedy } = longest(name);
    for (let i = 0; i < 2; i++) {
      const moved = await pair.answer({ prompt, maxNewTokens: NUM_TOKENS });
      expect(moved.tokens).toEqual(greedy.slice(0, NUM_TOKENS));
      expectNothingInVain(moved);
    }
    await pair.close();
  });

  it('refuses what it has no room for, and the first worker lets go', async () => {
    const pair = await workers('llama-103', {}, { cache: { deviceBytes: 2 << 20 } });
    const others: (() => void)[] = [];
    for (;;) {
      const cache = pair.decode.manager.createKvCache();
      const isFull = !(await cache.resume()) || !cache.resize(64, 64);
      others.push(() => cache.close());
      if (isFull) break;
    }
    const request = { prompt: longest('llama-103').prompt, maxNewTokens: NUM_TOKENS };
    await expect(pair.answer(request)).rejects.toThrow(/refused.*no room/);
    for (const close of others) close();
    expect((await pair.answer(request)).tokens).toEqual(longest('llama-103').greedy.slice(0, NUM_TOKENS));
    await pair.close();
  });
});

it('a request that its client leaves while it is read is nowhere any more', async () => {
  const pair = await workers('gemma3-101');
  const client = new AbortController();
  const { prompt } = longest('gemma3-101');
  const reading = pair.prefill.prefillFor({ prompt, signal: client.signal }, (moving) => {
    const transfer = pair.start('left')(moving);
    queueMicrotask(() => client.abort(new Error('the client left')));
    return transfer;
  });
  await expect(reading).rejects.toThrow('the client left');
  await vi.waitUntil(() => pair.receiver.numOpen === 0, 30_000);
  const moved = await pair.answer({ prompt, maxNewTokens: NUM_TOKENS });
  expect(moved.tokens).toEqual(longest('gemma3-101').greedy.slice(0, NUM_TOKENS));
  await pair.close();
});

it('a prompt that makes way for others while it moves is read again, and comes whole', async () => {
  const pair = await workers('llama-103', { cache: { deviceBytes: 2 << 20 }, maxActive: 1 });
  const { prompt, greedy } = longest('llama-103');
  let urgent: Promise<unknown> | undefined;
  const moved = await pair.answer({ prompt, maxNewTokens: NUM_TOKENS, publish: false }, (numTokens) => {
    if (numTokens >= 32) urgent ??= pair.prefill.complete({ prompt: prompt.slice(0, 20), maxNewTokens: 3, priority: 1 });
  });
  expect(moved.tokens).toEqual(greedy.slice(0, NUM_TOKENS));
  expectNothingInVain(moved);
  await urgent;
  expect(pair.prefill.preemptions.numReleases).toBe(1);
  await pair.close();
});

it('a prompt that came is answered several times, as it would be where it was read', async () => {
  const pair = await workers('granitehybrid-101');
  const { prompt } = longest('granitehybrid-101');
  const request = { prompt, maxNewTokens: NUM_TOKENS, sampling: { temperature: 1.2, topK: 20, seed: 5 } };
  const expected = await pair.prefill.completeSeveral({ ...request, lookup: false, publish: false }, 3);
  const cache = await pair.move(request);
  const answers = await Promise.all(pair.decode.continueSeveral({ cache }, request, 3).map(readToEnd));
  expect(answers.map(({ tokens }) => tokens)).toEqual(expected.map(({ tokens }) => tokens));
  expect(answers.map(({ report }) => report.computedTokens)).toEqual([1, 0, 0]);
  await pair.close();
});

it('a request without room waits for what is on its way here, and fails only when nothing is', async () => {
  const pair = await workers('llama-103', {}, { cache: { deviceBytes: 2 << 20 } });
  const { prompt, greedy } = longest('llama-103');
  const others: KvCache[] = [];
  for (let isFull = false; !isFull; ) {
    const cache = pair.decode.manager.createKvCache();
    others.push(cache);
    isFull = !(await cache.resume()) || !cache.resize(64, 64);
  }
  const request = { prompt, maxNewTokens: NUM_TOKENS };
  await expect(pair.decode.complete(request)).rejects.toMatchObject({ code: 'cache-full' });
  let letGo = () => {};
  pair.decode.waitFor(
    new Promise<void>((resolve) => {
      letGo = resolve;
    }),
  );
  const [first, second] = [pair.decode.complete(request), pair.decode.complete({ ...request, maxNewTokens: 1 })];
  await vi.waitUntil(() => pair.decode.load.waiting === 2, 30_000);
  for (const cache of others) cache.close();
  letGo();
  expect((await first).tokens).toEqual(greedy.slice(0, NUM_TOKENS));
  expect((await second).tokens).toEqual(greedy.slice(0, 1));
  await pair.close();
});

it('what is no request to move is refused, and what came stays whole', async () => {
  const pair = await workers('llama-103');
  const none = () => {
    throw new Error('nothing is to be sent');
  };
  await expect(pair.prefill.prefillFor({ prompt: [1] }, none)).rejects.toMatchObject({ code: 'prompt-invalid' });
  await expect(pair.prefill.prefillFor({ prompt: [1, 2] }, none)).rejects.toThrow('nothing is to be sent');
  const cache = pair.decode.manager.createKvCache();
  const answer = pair.decode.continueFrom({ cache }, { prompt: [1, 2], maxNewTokens: 1 });
  await expect(answer.next()).rejects.toMatchObject({ code: 'arrival-invalid' });
  expect(cache.status).toBe('suspended');
  cache.close();
  await pair.close();
});
