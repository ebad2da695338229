import { dropPage } from '@bufferwise/cache-manager/testing';
import type { WebGpuPoolMemory } from '@bufferwise/gpu-kernels';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { HybridEngine, type HybridEngineOptions } from '../src/engine/hybrid-engine.ts';
import { ask, ColdAnswers, expectClean, expectSame } from './support/answers.ts';
import { oracleModel } from './support/small-models.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 240_000 });

// What went wrong in other engines, tried on this one: full attention beside recurrent state, and windows.
const device = await requestTestDevice();
const hybrid = oracleModel('granitehybrid-101');
const windowed = oracleModel('gemma3-101');
const cold = new ColdAnswers(hybrid, device);
const coldWindowed = new ColdAnswers(windowed, device);
afterAll(async () => {
  await cold.close();
  await coldWindowed.close();
});

const { text } = hybrid;
async function withEngine(
  options: Partial<HybridEngineOptions>,
  run: (engine: HybridEngine) => Promise<void>,
  { model } = hybrid,
): Promise<void> {
  const cache = { tokensPerBlock: 8, deviceBytes: 24 << 20, ...options.cache };
  const engine = await HybridEngine.create({ model, device, chunkTokens: 16, debugChecks: true, ...options, cache });
  await run(engine);
  await expectClean(engine);
  await engine.close();
}

describe('state and attention are always of the same tokens', () => {
  it.each(['required', 'optional'] as const)('when the state of a prefix is lost and %s', async (policy) => {
    await withEngine({ cache: { policies: { ssm_state: policy, conv_state: policy } } }, async (engine) => {
      const request = { prompt: text.slice(0, 33), maxNewTokens: 3 };
      await ask(engine, request);
      const groupId = engine.manager.getBufferGroupId(0, 'ssm_state');
      expect(dropPage(engine.manager, { tokens: text.slice(0, 32), block: 3, groupId })).toBe(true);
      const found = await ask(engine, request);
      expectSame(found, await cold.to(request));
      expect(found.report.reusedTokens).toBe(16);
    });
  });

  it('behind drafts that were rejected', async () => {
    await withEngine({ speculation: { maxDrafts: 5 } }, async (engine) => {
      const prompt = [...text.slice(0, 12), ...text.slice(0, 12)];
      const first = await ask(engine, { prompt, maxNewTokens: 12 });
      expect(first.tokens).toEqual((await cold.to({ prompt, maxNewTokens: 12 })).tokens);
      expect(first.report.draftedTokens).toBeGreaterThan(first.report.acceptedDrafts);
      const next = { prompt: [...prompt, ...first.tokens.slice(0, -1), 5], maxNewTokens: 3 };
      const found = await ask(engine, next);
      expect(found.tokens).toEqual((await cold.to(next)).tokens);
      expect(found.report.reusedTokens).toBe(next.prompt.length - 1);
    });
  });

  it('when a turn is told again but for its last tokens', async () => {
    await withEngine({ chunkTokens: 64 }, async (engine) => {
      await ask(engine, { prompt: text.slice(0, 80), maxNewTokens: 1, turnBorders: [50] });
      const next = { prompt: [...text.slice(0, 62), 9, 8, 7], maxNewTokens: 3 };
      const found = await ask(engine, next);
      expectSame(found, await cold.to(next));
      expect(found.report.reusedTokens).toBe(50);
    });
  });
});

describe('requests do not see each other', () => {
  it('whatever their order in the steps they share, and neither do those that continue from them', async () => {
    const prompts = [text.slice(0, 10), text.slice(40, 110), text.slice(5, 38)];
    for (const order of [
      [0, 1, 2],
      [2, 1, 0],
      [1, 0, 2],
    ]) {
      await withEngine({ stepTokens: 64 }, async (engine) => {
        for (let round = 0; round < 2; round++) {
          const found = await Promise.all(order.map((i) => ask(engine, { prompt: prompts[i], maxNewTokens: 2 })));
          for (const [at, i] of order.entries())
            expectSame(found[at], await cold.to({ prompt: prompts[i], maxNewTokens: 2 }), `prompt ${i}`);
        }
      });
    }
  });

  it('when two take turns token by token', async () => {
    await withEngine({}, async (engine) => {
      const requests = [text.slice(0, 20), text.slice(60, 80)].map((prompt) => ({ prompt, maxNewTokens: 6 }));
      const readers = requests.map((request) => engine.generate(request));
      const tokens: number[][] = [[], []];
      for (let turn = 0; turn < 6; turn++) {
        for (const [i, reader] of readers.entries()) tokens[i].push(((await reader.next()).value as { token: number }).token);
      }
      for (const reader of readers) await reader.next();
      for (const [i, request] of requests.entries()) expect(tokens[i]).toEqual((await cold.to(request)).tokens);
    });
  });

  it('and eight that ask the same at once get one answer', async () => {
    await withEngine({ stepTokens: 64 }, async (engine) => {
      const request = { prompt: text.slice(0, 21), maxNewTokens: 4 };
      for (let round = 0; round < 2; round++) {
        const found = await Promise.all(Array.from({ length: 8 }, () => ask(engine, request)));
        for (const each of found) expectSame(each, await cold.to(request));
      }
    });
  });
});

describe('memory', () => {
  it('of a window lasts for a prompt of any length, as pages behind it are given back', async () => {
    // More than five blocks are never held: two that a chunk writes, and three that its first token looks back into.
    const cache = { poolRatio: [1, 1], maxUtilForResume: 1 };
    await withEngine(
      { cache },
      async (engine) => {
        const holder = engine.manager.createKvCache();
        await holder.resume();
        const { poolGroup } = engine.manager.layout.bufferAttr(0, 'key');
        const capacity = 8 * (engine.storage()[poolGroup].available - 5);
        expect(holder.resize(capacity, 0)).toBe(true);
        const request = { prompt: windowed.text.slice(0, 170), maxNewTokens: 4 };
        for (let round = 0; round < 2; round++)
          expect((await ask(engine, request)).tokens).toEqual((await coldWindowed.to(request)).tokens);
        holder.close();
      },
      windowed,
    );
  });

  it.each([
    ['state', hybrid, cold],
    ['windows', windowed, coldWindowed],
  ] as const)('that is full of NaN gets into no answer of a model with %s', async (_, small, answers) => {
    await withEngine(
      {},
      async (engine) => {
        for (const { layerId, role } of engine.manager.bufferGrouping.flat()) {
          const { buffer } = engine.manager.poolMemory(layerId, role) as WebGpuPoolMemory;
          device.queue.writeBuffer(buffer, 0, new Uint32Array(buffer.size / 4).fill(0x7fc00000));
        }
        for (const prompt of [small.text.slice(0, 37), small.text.slice(0, 45), small.text.slice(0, 37)]) {
          expectSame(await ask(engine, { prompt, maxNewTokens: 3 }), await answers.to({ prompt, maxNewTokens: 3 }));
        }
      },
      small,
    );
  });
});
