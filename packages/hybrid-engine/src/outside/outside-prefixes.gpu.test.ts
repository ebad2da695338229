import type { PageStore } from '@bufferwise/adapter-kit';
import { MemoryConnector, MemoryPageStore } from '@bufferwise/adapter-kit/memory';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, it, vi } from 'vitest';
import { HybridEngine, type HybridEngineOptions } from '../engine/hybrid-engine.ts';
import { readGgufModel } from '../gguf/gguf-model.ts';
import { type OracleModel, oracleAnswers, oracleFile } from '../gguf/testing/oracle-models.ts';
import { modelFingerprint } from './model-fingerprint.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const device = await requestTestDevice();
const NUM_TOKENS = 6;

interface Process {
  engine: HybridEngine;
  close(): Promise<void>;
}

/** An engine with a cache of its own, as in another process, on a store that is shared. */
async function start(
  name: OracleModel,
  store: PageStore,
  options: Partial<HybridEngineOptions> = {},
  fingerprint?: string,
): Promise<Process> {
  const model = readGgufModel(oracleFile(name));
  const connector = new MemoryConnector({ store });
  const engine = await HybridEngine.create({
    model,
    device,
    chunkTokens: 16,
    debugChecks: true,
    outside: { connector, modelFingerprint: fingerprint ?? modelFingerprint(model), lookupMs: 30_000 },
    ...options,
    cache: { tokensPerBlock: 8, deviceBytes: 32 << 20, ...options.cache },
  });
  return {
    engine,
    close: async () => {
      await engine.saved();
      expect(engine.statistics().openRequests).toBe(0);
      await engine.close();
      await connector.close();
    },
  };
}

const longest = (name: OracleModel) => oracleAnswers(name).reduce((a, b) => (b.prompt.length > a.prompt.length ? b : a));
const ask = ({ engine }: Process, name: OracleModel, more = {}) =>
  engine.complete({ prompt: longest(name).prompt, maxNewTokens: NUM_TOKENS, ...more });
const expected = (name: OracleModel) => longest(name).greedy.slice(0, NUM_TOKENS);

/** What one process leaves in a store. */
async function storeOf(name: OracleModel, options: Partial<HybridEngineOptions> = {}): Promise<MemoryPageStore> {
  const store = new MemoryPageStore();
  const first = await start(name, store, options);
  expect((await ask(first, name)).tokens).toEqual(expected(name));
  await first.engine.saved();
  expect(first.engine.outside?.savedTokens).toBeGreaterThan(0);
  await first.close();
  return store;
}

describe.each<[OracleModel]>([['llama-103'], ['gemma3-101'], ['granitehybrid-101'], ['mamba2-101']])(
  'a second process with %s',
  (name) => {
    it('begins with what the first one left, and answers the same', async () => {
      const second = await start(name, await storeOf(name));
      const { tokens, report } = await ask(second, name);
      expect(tokens).toEqual(expected(name));
      const { length } = longest(name).prompt;
      expect(report.reusedTokens).toBe(length - 1 - ((length - 1) % 8));
      expect(second.engine.outside).toMatchObject({ loadedTokens: report.reusedTokens, failedLoads: 0 });
      await second.close();
    });
  },
);

it('a prompt that goes on by one token behind a block begins with all before it', async () => {
  const name = 'granitehybrid-101';
  const prompt = longest(name).prompt.slice(0, 17);
  const store = new MemoryPageStore();
  const first = await start(name, store);
  const { tokens } = await first.engine.complete({ prompt, maxNewTokens: 2 });
  await first.close();
  const second = await start(name, store);
  const answer = await second.engine.complete({ prompt, maxNewTokens: 2 });
  expect([answer.tokens, answer.report.reusedTokens]).toEqual([tokens, 16]);
  await second.close();
});

describe('nothing from outside is used', () => {
  const name = 'gemma3-101';

  it('of another model, or under another scope', async () => {
    const store = await storeOf(name);
    const other = await start(name, store, {}, 'another model');
    expect((await ask(other, name)).report.reusedTokens).toBe(0);
    await other.close();
    const second = await start(name, store);
    expect((await ask(second, name, { scope: { salt: 5 } })).report.reusedTokens).toBe(0);
    expect((await ask(second, name, { lookup: false })).report.reusedTokens).toBe(0);
    await second.close();
  });

  it('when a page of it is gone, and the prompt is computed', async () => {
    const store = await storeOf(name);
    const gone: PageStore = Object.create(store, {
      // Said to be there, and is not.
      get: { value: (keys: readonly unknown[]) => Promise.resolve(keys.map(() => null)) },
      limits: { value: store.limits },
      has: { value: (keys: Parameters<PageStore['has']>[0]) => store.has(keys) },
      put: { value: (pages: Parameters<PageStore['put']>[0]) => store.put(pages) },
    });
    const second = await start(name, gone);
    const { tokens, report } = await ask(second, name);
    expect(tokens).toEqual(expected(name));
    expect(report.reusedTokens).toBe(0);
    expect(second.engine.outside).toMatchObject({ loadedTokens: 0, failedLoads: 1 });
    await second.close();
  });

  it('when the store is slow to say what it has, and the prompt is computed', async () => {
    const store = await storeOf(name);
    let answer = () => {};
    const slow: PageStore = Object.create(store, {
      has: { value: (keys: readonly unknown[]) => new Promise((resolve) => (answer = () => resolve(keys.map(() => false)))) },
      limits: { value: store.limits },
      put: { value: (pages: Parameters<PageStore['put']>[0]) => store.put(pages) },
    });
    const model = readGgufModel(oracleFile(name));
    const connector = new MemoryConnector({ store: slow });
    const second = await start(name, slow, { outside: { connector, modelFingerprint: modelFingerprint(model), lookupMs: 0 } });
    expect((await ask(second, name)).tokens).toEqual(expected(name));
    expect(second.engine.outside?.slowLookups).toBe(1);
    answer();
    await second.close();
    await connector.close();
  });
});

it('a connector that was closed too early costs its work and nothing else', async () => {
  const name = 'gemma3-101';
  const model = readGgufModel(oracleFile(name));
  const store = await storeOf(name);
  const connector = new MemoryConnector({ store });
  const second = await start(name, store, { outside: { connector, modelFingerprint: modelFingerprint(model) } });
  await connector.close();
  expect((await ask(second, name)).tokens).toEqual(expected(name));
  expect((await ask(second, name)).tokens).toEqual(expected(name));
  await second.close();
});

it('an engine that is closed while pages are on their way leaves none of them held', async () => {
  const name = 'gemma3-101';
  const model = readGgufModel(oracleFile(name));
  const store = await storeOf(name);
  let come = () => {};
  const late: PageStore = Object.create(store, {
    get: {
      value: async (keys: Parameters<PageStore['get']>[0]) => {
        await new Promise<void>((resolve) => {
          come = resolve;
        });
        return store.get(keys);
      },
    },
    has: { value: (keys: Parameters<PageStore['has']>[0]) => store.has(keys) },
    put: { value: (pages: Parameters<PageStore['put']>[0]) => store.put(pages) },
    limits: { value: store.limits },
  });
  const connector = new MemoryConnector({ store: late });
  const second = await start(name, late, { outside: { connector, modelFingerprint: modelFingerprint(model) } });
  const answer = ask(second, name);
  const refused = expect(answer).rejects.toMatchObject({ code: 'engine-closed' });
  await vi.waitUntil(() => second.engine.statistics().openRequests > 0, 30_000);
  const closed = second.engine.close();
  come();
  await closed;
  await refused;
  expect(second.engine.statistics().openRequests).toBe(0);
  await connector.close();
});

it.each([
  [{ lookupMs: Number.NaN }, /lookupMs is NaN/],
  [{ minTokens: -1 }, /minTokens is -1/],
  [{ connector: new MemoryConnector({ asyncLoad: false }) }, /loads inside of steps only/],
])('options that make no sense are refused: %j', async (more, message) => {
  const outside = { connector: new MemoryConnector(), modelFingerprint: 'any', ...more };
  const refused = start('gemma3-101', new MemoryPageStore(), { outside });
  await expect(refused).rejects.toMatchObject({ code: 'engine-options', message: expect.stringMatching(message) });
});

it('private groups never leave, and optional ones come back', async () => {
  const policies = (layerId: number) => (layerId === 5 ? undefined : ('optional' as const));
  const store = await storeOf('gemma3-101', { cache: { policies } });
  const second = await start('gemma3-101', store, { cache: { policies } });
  const { tokens, report } = await ask(second, 'gemma3-101');
  expect(tokens).toEqual(expected('gemma3-101'));
  expect(report.groups.filter(({ reusedTokens }) => reusedTokens > 0)).toHaveLength(2);
  await second.close();
  const privately = { cache: { policies: (layerId: number) => (layerId === 5 ? undefined : ('private' as const)) } };
  const first = await storeOf('gemma3-101', privately);
  const third = await start('gemma3-101', first, privately);
  const answer = await ask(third, 'gemma3-101');
  expect(answer.tokens).toEqual(expected('gemma3-101'));
  expect(third.engine.outside?.loadedTokens).toBeGreaterThan(0);
  await third.close();
});

it('several answers to one prompt load it once', async () => {
  const second = await start('granitehybrid-101', await storeOf('granitehybrid-101'));
  const prompt = longest('granitehybrid-101').prompt;
  const answers = await second.engine.completeSeveral({ prompt, maxNewTokens: NUM_TOKENS }, 3);
  expect(answers.map(({ tokens }) => tokens)).toEqual(new Array(3).fill(expected('granitehybrid-101')));
  expect(second.engine.outside?.loadedTokens).toBe(answers[0].report.reusedTokens);
  await second.close();
});
