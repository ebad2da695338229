import { EventLog, type KvCache, type StoredEvent } from '@bufferwise/cache-manager';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { readModel } from '../model/model.ts';
import { type ExpectedAnswer, whalerAnswers, whalerFiles } from '../model/testing/whaler-files.ts';
import type { EngineErrorCode } from './engine-error.ts';
import type { GenerationReport, GenerationRequest, RequestBeginning } from './generation.ts';
import { HybridEngine } from './hybrid-engine.ts';
import { nextTask } from './next-task.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const device = await requestTestDevice();
const model = readModel(whalerFiles());
const { ids } = whalerAnswers().find(({ name }) => name === 'long') as ExpectedAnswer;

const engine = await HybridEngine.create({ model, device, chunkTokens: 64, debugChecks: true });
afterAll(() => engine.close());
afterEach(() => {
  expect(engine.statistics().openRequests).toBe(0);
  engine.manager.clearReusableBlocks();
  for (const { free, total } of engine.storage()) expect(free).toBe(total);
});

/** A beginning that requests share, and ways to go on from it. */
const BEGINNING = ids.slice(0, 40);
const ENDINGS = [ids.slice(100, 108), ids.slice(200, 208), ids.slice(300, 308), ids.slice(400, 408)];

const request = (more: Partial<GenerationRequest> = {}): GenerationRequest => ({ prompt: BEGINNING, maxNewTokens: 4, ...more });
const answer = async (more: Partial<GenerationRequest> = {}, by = engine) => (await by.complete(request(more))).tokens;
const reuse = async (more: Partial<GenerationRequest>) => (await engine.complete(request(more))).report;

const withCode = (code: EngineErrorCode) => expect.objectContaining({ name: 'EngineError', code });

/** Expects a request to be refused before it takes anything. */
async function expectRefused(more: Partial<GenerationRequest>, code: EngineErrorCode, message: RegExp): Promise<void> {
  const before = engine.costs.numSteps;
  const refused = engine.complete(request(more));
  await expect(refused).rejects.toThrow(withCode(code));
  await expect(refused).rejects.toThrow(message);
  expect(engine.costs.numSteps).toBe(before);
  expect(engine.statistics().openRequests).toBe(0);
}

it('binds more memory than one binding has, in several pools', async () => {
  const deviceBytes = 3 * device.limits.maxStorageBufferBindingSize;
  const large = await HybridEngine.create({ model, device, chunkTokens: 64, cache: { deviceBytes } });
  const { poolGroups } = large.manager.layout;
  const bytes = large.storage().map(({ slotBytes, total }) => slotBytes * total);
  expect(Math.max(...bytes)).toBeGreaterThan(device.limits.maxStorageBufferBindingSize);
  expect(Math.max(...poolGroups.map(({ pools }) => pools.length))).toBeGreaterThan(1);
  expect(await answer({}, large)).toEqual(await answer());
  await large.close();
});

describe('a request is refused, and takes nothing,', () => {
  it('without a token', async () => {
    await expectRefused({ prompt: [] }, 'prompt-invalid', /no tokens/);
  });

  it.each([[1024], [-1], [1.5], [Number.NaN]])('with token %d, which the model does not have', async (token) => {
    await expectRefused({ prompt: [1023, token] }, 'prompt-invalid', /token 1 of the prompt is .* 0 to 1023/);
  });

  it.each([[0], [-1], [1.5], [Number.NaN]])('when it wants %d tokens', async (maxNewTokens) => {
    await expectRefused({ maxNewTokens }, 'engine-options', /maxNewTokens is/);
  });

  it.each([[0], [41], [2.5]])('with a turn border at %d of 40 tokens', async (border) => {
    await expectRefused({ turnBorders: [20, border] }, 'engine-options', /turn border .* of 40 tokens/);
  });

  it('when prompt and answer are longer than the cache could ever hold', async () => {
    const most = engine.manager.clampSequenceLength(10_000_000);
    await expectRefused(
      { prompt: new Array(most + 1).fill(7), maxNewTokens: 1 },
      'prompt-too-long',
      new RegExp(`at most ${most} tokens`),
    );
    await expectRefused({ maxNewTokens: most - BEGINNING.length + 2 }, 'prompt-too-long', /shorten the prompt/);
    await expectRefused({ maxNewTokens: Number.MAX_SAFE_INTEGER - 1 }, 'prompt-too-long', /shorten the prompt/);
  });

  it.each([[{ beamWidth: 0 }], [{ beamWidth: 65 }], [{ lengthPenalty: Number.NaN }], [{ priority: Number.NaN }]])(
    'as a beam search with %j',
    async (more) => {
      const search = engine.beamSearch({ prompt: BEGINNING, beamWidth: 2, maxNewTokens: 2, ...more });
      await expect(search).rejects.toThrow(withCode('engine-options'));
      expect(engine.statistics().openRequests).toBe(0);
    },
  );

  it('with sampling that makes no sense', async () => {
    await expect(engine.complete(request({ sampling: { topP: 0 } }))).rejects.toMatchObject({
      code: 'sampling-options',
      option: 'topP',
    });
    expect(engine.statistics().openRequests).toBe(0);
  });

  it('and takes the borders of what is allowed', async () => {
    expect(await answer({ prompt: [0, 1023], turnBorders: [1, 2], maxNewTokens: 1 })).toHaveLength(1);
  });
});

describe('an engine is refused', () => {
  it.each([[0], [1.5], [Number.NaN], [32_769]])('with chunks of %d tokens', async (chunkTokens) => {
    const refused = HybridEngine.create({ model, device, chunkTokens });
    await expect(refused).rejects.toThrow(withCode('engine-options'));
    // Logits have the longest rows, 1024 values of 4 bytes; a binding has 128 MiB.
    await expect(refused).rejects.toThrow(/from 1 to 32768,/);
  });

  it.each<[object, RegExp]>([
    [{ maxActive: 0 }, /maxActive is 0/],
    [{ stepTokens: 1.5 }, /stepTokens is 1.5/],
    [{ speculation: { maxDrafts: 128 } }, /maxDrafts is 128; .* from 1 to 127/],
    [{ speculation: { maxDrafts: 2, minNgram: 0 } }, /minNgram is 0/],
  ])('with %j', async (options, message) => {
    const refused = HybridEngine.create({ model, device, ...options });
    await expect(refused).rejects.toThrow(withCode('engine-options'));
    await expect(refused).rejects.toThrow(message);
  });

  it('with cache options that fit no cache', async () => {
    await expect(HybridEngine.create({ model, device, cache: { deviceBytes: -1 } })).rejects.toMatchObject({
      path: 'tiers[0].quota',
    });
  });
});

describe('while other requests hold the cache', () => {
  const holders: KvCache[] = [];
  const closeHolders = () => {
    for (const holder of holders.splice(0)) holder.close();
  };
  afterEach(closeHolders);

  /** Takes every page of full attention that is left. */
  async function holdAll(): Promise<void> {
    const { tokensPerBlock } = engine.manager.layout;
    const { available } = engine.storage()[engine.manager.layout.bufferAttr(3, 'key').poolGroup];
    const holder = engine.manager.createKvCache();
    holders.push(holder);
    await holder.resume();
    const capacity = available * tokensPerBlock;
    expect(holder.resize(capacity, capacity)).toBe(true);
  }

  it('a request that finds no room is told so, holds nothing, and is answered once they are closed', async () => {
    await holdAll();
    await expect(answer()).rejects.toThrow(withCode('cache-full'));
    await expect(answer()).rejects.toThrow(/try again/);
    expect(engine.statistics().openRequests).toBe(holders.length);
    closeHolders();
    expect(await answer()).toHaveLength(4);
  });

  it('a request that runs out in the middle of its answer gives back what it had', async () => {
    const tokens: number[] = [];
    const running = async () => {
      for await (const { token } of engine.generate(request({ maxNewTokens: 20, publish: false }))) {
        tokens.push(token);
        if (tokens.length === 1) await holdAll();
      }
    };
    await expect(running()).rejects.toThrow(withCode('cache-full'));
    // Three blocks hold 48 tokens: those of the prompt, and 8 of the answer behind which a ninth was chosen.
    expect(tokens).toHaveLength(9);
    expect(engine.statistics().openRequests).toBe(holders.length);
    closeHolders();
    expect(await answer()).toEqual(tokens.slice(0, 4));
  });
});

describe('a request that is stopped', () => {
  /** What nobody holds, in slots. */
  const available = () => engine.storage().map((group) => group.available);

  it('by its signal in the middle ends with the reason and holds nothing', async () => {
    const before = available();
    const controller = new AbortController();
    const tokens: number[] = [];
    const running = async () => {
      for await (const { token } of engine.generate(request({ maxNewTokens: 20, signal: controller.signal }))) {
        tokens.push(token);
        if (tokens.length === 3) controller.abort(new Error('enough'));
      }
    };
    await expect(running()).rejects.toThrow('enough');
    expect(tokens).toHaveLength(3);
    expect(engine.statistics().openRequests).toBe(0);
    expect(available()).toEqual(before);
  });

  it('leaves what it published to the next one', async () => {
    const controller = new AbortController();
    const steps = engine.generate(request({ signal: controller.signal }));
    await steps.next();
    controller.abort();
    await expect(steps.next()).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
    expect(await reuse({})).toMatchObject({ reusedTokens: 39, computedTokens: 1 });
  });

  it('before it began computes nothing', async () => {
    const before = engine.costs.numSteps;
    await expect(answer({ signal: AbortSignal.abort(new Error('never mind')) })).rejects.toThrow('never mind');
    expect(engine.costs.numSteps).toBe(before);
    expect(engine.statistics().openRequests).toBe(0);
  });

  it('while others share its steps does not disturb them', async () => {
    const alone = await answer({ lookup: false, publish: false });
    const controller = new AbortController();
    const stopped = answer({
      signal: controller.signal,
      maxNewTokens: 20,
      onLogits: () => controller.abort(new Error('enough')),
    });
    const others = [answer(), answer({ prompt: BEGINNING })];
    await expect(stopped).rejects.toThrow('enough');
    expect(await Promise.all(others)).toEqual([alone, alone]);
  });

  it('by leaving the loop holds nothing', async () => {
    const before = available();
    for await (const { token } of engine.generate(request({ maxNewTokens: 20 }))) {
      expect(engine.statistics().openRequests).toBe(1);
      if (token >= 0) break;
    }
    expect(engine.statistics().openRequests).toBe(0);
    expect(available()).toEqual(before);
  });

  it('by an error of the caller, who looks at the logits, holds nothing', async () => {
    const look = () => {
      throw new Error('I did not like them');
    };
    await expect(answer({ onLogits: look })).rejects.toThrow('I did not like them');
    expect(engine.statistics().openRequests).toBe(0);
  });
});

describe('an engine that was closed', () => {
  const make = () => HybridEngine.create({ model, device, chunkTokens: 64, cache: { deviceBytes: 16 * 2 ** 20 } });

  it('answers nothing more, and may be closed again', async () => {
    const closed = await make();
    expect(await answer({ maxNewTokens: 1 }, closed)).toHaveLength(1);
    await closed.close();
    await expect(answer({}, closed)).rejects.toThrow(withCode('engine-closed'));
    await closed.close();
  });

  it.each([[0], [1], [2], [3], [4], [6], [10]])('ends the requests under way, %d turns after they came', async (turns) => {
    const closing = await make();
    const running = [answer({ maxNewTokens: 1000 }, closing), answer({ prompt: ids.slice(0, 200), maxNewTokens: 1000 }, closing)];
    const outcomes = Promise.allSettled(running);
    for (let turn = 0; turn < turns; turn++) await nextTask();
    await closing.close();
    for (const outcome of await outcomes) expect(outcome).toEqual({ status: 'rejected', reason: withCode('engine-closed') });
  });

  it('ends a request whose caller holds a token in hand', async () => {
    const closing = await make();
    const steps = closing.generate(request());
    expect((await steps.next()).done).toBe(false);
    await closing.close();
    await expect(steps.next()).rejects.toThrow(withCode('engine-closed'));
    expect((await steps.next()).done).toBe(true);
  });
});

describe('an answer', () => {
  it('ends after a stop token, which is its last', async () => {
    const { tokens } = await engine.complete(request({ maxNewTokens: 12 }));
    const stop = tokens[5];
    const stopped = await engine.complete(request({ maxNewTokens: 12, stopTokens: [stop] }));
    expect(stopped.tokens).toEqual(tokens.slice(0, tokens.indexOf(stop) + 1));
    expect(stopped.report).toMatchObject({ finishReason: 'stop', generatedTokens: stopped.tokens.length });
  });

  it('ends at its length when no stop token comes', async () => {
    const { tokens, report } = await engine.complete(request({ maxNewTokens: 3, stopTokens: [] }));
    expect(tokens).toHaveLength(3);
    expect(report).toMatchObject({ finishReason: 'length', generatedTokens: 3 });
  });

  it('that is drawn is the same for the same seed, reused or not, and another for another', async () => {
    const drawn = (seed: number, lookup = true) =>
      answer({ maxNewTokens: 12, lookup, sampling: { temperature: 1, topK: 50, seed } });
    const first = await drawn(7);
    expect(await drawn(7)).toEqual(first);
    expect(await drawn(7, false)).toEqual(first);
    expect(await drawn(8)).not.toEqual(first);
  });

  it('does not contain what the caller forbids by the logits', async () => {
    const [best] = await answer({ maxNewTokens: 1 });
    const [second] = await answer({
      maxNewTokens: 1,
      onLogits: (logits) => logits.fill(Number.NEGATIVE_INFINITY, best, best + 1),
    });
    expect(second).not.toBe(best);
  });

  it('tells what it has cost, however it ended', async () => {
    const reports: (readonly [number, number])[] = [];
    const onReport = ({ generatedTokens }: GenerationReport, answer: number) => reports.push([answer, generatedTokens]);
    await engine.complete(request({ onReport }));
    for await (const _ of engine.generate(request({ onReport }))) break;
    const controller = new AbortController();
    const onLogits = () => controller.abort(new Error('enough'));
    await expect(engine.complete(request({ onReport, onLogits, signal: controller.signal }))).rejects.toThrow('enough');
    expect(reports).toEqual([
      [0, 4],
      [0, 1],
      [0, 1],
    ]);
  });

  it('comes with the log-probability of each token, and a report that adds up', async () => {
    const { tokens, logProbabilities, report } = await engine.complete(request());
    expect(logProbabilities).toHaveLength(tokens.length);
    expect(Math.max(...logProbabilities)).toBeLessThanOrEqual(0);
    expect(report).toMatchObject({ promptTokens: 40, reusedTokens: 0, computedTokens: 40, generatedTokens: 4 });
    expect(report.groups.map(({ policy, reusedTokens }) => [policy, reusedTokens])).toEqual([
      ['required', 0],
      ['required', 0],
      ['required', 0],
    ]);
    expect(report.timeToFirstTokenMs).toBeGreaterThan(0);
    expect(report.totalMs).toBeGreaterThanOrEqual(report.timeToFirstTokenMs);
  });
});

describe('requests at the same time', () => {
  it('with one prompt give one answer, that of the prompt alone', async () => {
    const alone = await answer({ lookup: false, publish: false });
    const together = await Promise.all(Array.from({ length: 8 }, () => answer()));
    expect(new Set(together.map(String))).toEqual(new Set([String(alone)]));
  });

  it('with several prompts give each its own answer, in fewer steps than one by one', async () => {
    const prompts = [...ENDINGS, [7], [...BEGINNING, ...ENDINGS[0]], ids.slice(20, 120)];
    const alone: number[][] = [];
    const before = engine.costs.numSteps;
    for (const prompt of prompts) alone.push(await answer({ prompt, lookup: false, publish: false }));
    const stepsAlone = engine.costs.numSteps - before;
    const together = await Promise.all(prompts.map((prompt) => answer({ prompt })));
    expect(together).toEqual(alone);
    expect(engine.costs.numSteps - before - stepsAlone).toBeLessThan(stepsAlone / 2);
  });
});

describe('a request finds the state', () => {
  it('at the turn border of an earlier one', async () => {
    await answer({ prompt: [...BEGINNING, ...ENDINGS[0]], turnBorders: [BEGINNING.length] });
    const report = await reuse({ prompt: [...BEGINNING, ...ENDINGS[1]] });
    expect(report).toMatchObject({ reusedTokens: BEGINNING.length, computedTokens: ENDINGS[1].length });
    expect(report.groups.map(({ reusedTokens }) => reusedTokens)).toEqual([40, 40, 40]);
  });

  it('where two earlier ones had parted, although the first was never cut there', async () => {
    const prompts = ENDINGS.map((ending) => [...BEGINNING, ...ending]);
    const cold = await answer({ prompt: prompts[2], lookup: false, publish: false });
    const first = await reuse({ prompt: prompts[0] });
    const second = await reuse({ prompt: prompts[1] });
    const third = await engine.complete(request({ prompt: prompts[2] }));
    expect([first, second, third.report].map(({ reusedTokens }) => reusedTokens)).toEqual([0, 0, BEGINNING.length]);
    expect(third.report.computedTokens).toBe(ENDINGS[2].length);
    expect(third.tokens).toEqual(cold);
  });

  it('before its last token when the same prompt comes again', async () => {
    const first = await engine.complete(request());
    const again = await engine.complete(request());
    expect(again.report).toMatchObject({ reusedTokens: 39, computedTokens: 1 });
    expect(again.tokens).toEqual(first.tokens);
  });

  it('on the grid of chunks, whatever comes behind it', async () => {
    await answer({ prompt: ids.slice(0, 150) });
    expect(await reuse({ prompt: [...ids.slice(0, 128), 5, 6] })).toMatchObject({ reusedTokens: 128, computedTokens: 2 });
  });

  it('also when there is as little memory as the model can do with', async () => {
    const small = await HybridEngine.create({ model, device, chunkTokens: 64, cache: { deviceBytes: 1 } });
    await answer({}, small);
    const { report } = await small.complete(request());
    expect(report).toMatchObject({ reusedTokens: 39, computedTokens: 1 });
    await small.close();
  });

  it('only of its own scope, and only when it looks and the other published', async () => {
    await answer({ scope: { salt: 1 } });
    await answer({ scope: { salt: 2 }, publish: false });
    expect(await reuse({})).toMatchObject({ reusedTokens: 0 });
    expect(await reuse({ scope: { salt: 2 } })).toMatchObject({ reusedTokens: 0 });
    expect(await reuse({ scope: { salt: 1 }, lookup: false })).toMatchObject({ reusedTokens: 0 });
    expect(await reuse({ scope: { salt: 1 } })).toMatchObject({ reusedTokens: 39 });
  });
});

it('whoever watches sees what a request begins with, whose pages are whose, and what others may reuse', async () => {
  const events = new EventLog({ partialBlocks: true });
  const watched = await HybridEngine.create({ model, device, chunkTokens: 64, events, debugChecks: true });
  const begun: (RequestBeginning & { numSteps: number })[] = [];
  const ids = new Set<number | null>();
  const ask = (id: number) =>
    watched.complete({
      ...request(),
      id,
      onBegin: (beginning) => begun.push({ ...beginning, numSteps: watched.costs.numSteps }),
      onLogits: () => {
        for (const shown of watched.manager.inspect().requests) ids.add(shown.id);
      },
    });
  const first = await ask(7);
  const numSteps = watched.costs.numSteps;
  const second = await ask(8);
  expect(begun).toEqual([
    { reusedTokens: 0, groups: first.report.groups, numSteps: 0 },
    { reusedTokens: BEGINNING.length - 1, groups: second.report.groups, numSteps },
  ]);
  expect(ids).toEqual(new Set([7, 8]));
  const stored = events.take().filter(({ type }) => type === 'stored') as StoredEvent[];
  expect(new Set(stored.map(({ groupId }) => groupId)).size).toBe(watched.manager.lifecycles.size);
  await watched.close();
});

it('a request whose watcher throws fails alone, and holds nothing', async () => {
  const onBegin = () => {
    throw new Error('I did not like it');
  };
  await expect(answer({ onBegin })).rejects.toThrow('I did not like it');
  expect((await answer()).length).toBe(4);
});

describe('the memory of the device comes back', async () => {
  const fresh = await requestTestDevice();
  afterEach(() => vi.restoreAllMocks());

  /** Labels of the buffers that are made on a device from now on and not destroyed. */
  function buffersAlive(on: GPUDevice): Set<string> {
    const alive = new Set<string>();
    const create = on.createBuffer.bind(on);
    vi.spyOn(on, 'createBuffer').mockImplementation((descriptor) => {
      const buffer = create(descriptor);
      const name = `${buffer.label} ${alive.size}`;
      alive.add(name);
      const destroy = buffer.destroy.bind(buffer);
      buffer.destroy = () => {
        alive.delete(name);
        destroy();
      };
      return buffer;
    });
    return alive;
  }

  it('when the kernels cannot be compiled', async () => {
    const alive = buffersAlive(fresh);
    vi.spyOn(fresh, 'createComputePipelineAsync').mockImplementation(async () => {
      expect(alive.size).toBeGreaterThan(0);
      throw new Error('not on this device');
    });
    await expect(HybridEngine.create({ model, device: fresh })).rejects.toMatchObject({ code: 'kernel-compile' });
    expect([...alive]).toEqual([]);
  });

  it('when an engine that has answered is closed', async () => {
    const alive = buffersAlive(device);
    const closed = await HybridEngine.create({ model, device, chunkTokens: 64 });
    await answer({}, closed);
    await answer({}, closed);
    expect(alive.size).toBeGreaterThan(0);
    await closed.close();
    // The buffer through which steps upload belongs to all that computes on the device.
    expect([...alive].filter((name) => !name.startsWith('bufferwise step upload'))).toEqual([]);
  });
});
