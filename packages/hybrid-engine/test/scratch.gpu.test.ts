import type { ReusePolicy } from '@bufferwise/core-policy';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { afterAll, expect, it, vi } from 'vitest';
import type { GenerationRequest } from '../src/engine/generation.ts';
import { HybridEngine, type HybridEngineOptions } from '../src/engine/hybrid-engine.ts';
import { ask, ColdAnswers, expectClean, expectSame } from './support/answers.ts';
import { oracleModel, type SmallModel, shortSightedWhaler } from './support/small-models.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const device = await requestTestDevice();
const TOKENS_PER_BLOCK = 8;
const CHUNK_TOKENS = 128;

/** Windows beside full attention, and beside recurrent state. */
const gemma = oracleModel('gemma3-101');
const hybrid = shortSightedWhaler();

const make = ({ model }: SmallModel, { cache, ...options }: Partial<HybridEngineOptions> = {}) =>
  HybridEngine.create({
    model,
    device,
    chunkTokens: CHUNK_TOKENS,
    cache: { tokensPerBlock: TOKENS_PER_BLOCK, deviceBytes: 24 << 20, scratch: true, ...cache },
    debugChecks: true,
    ...options,
  });
const cold = new Map([gemma, hybrid].map((small) => [small, new ColdAnswers(small, device)]));
afterAll(async () => {
  for (const each of cold.values()) await each.close();
});
const expected = (small: SmallModel, request: GenerationRequest) => (cold.get(small) as ColdAnswers).to(request);

const prompt = gemma.text.slice(0, 101);
const request = { prompt, maxNewTokens: 3 };

/** The most pages in use at a time in the pools of the windows, since it was asked last. */
function mostOfWindows({ manager }: HybridEngine): number {
  const groupId = manager.lifecycles.lifecycles.findIndex((each) => each.kind === 'attention' && each.windowSize !== null);
  const group = manager.inspect({ maxPages: 0, maxBlocks: 0 }).groups[groupId];
  return manager.takePeakStatistics(0)[group.poolGroup].unavailable;
}

it('a chunk takes a few slots instead of a page for every block that it leaves behind, and answers the same', async () => {
  const peaks: number[] = [];
  for (const scratch of [false, true]) {
    const engine = await make(gemma, { cache: { scratch } });
    mostOfWindows(engine);
    expectSame(await ask(engine, request), await expected(gemma, request), `scratch ${scratch}`);
    peaks.push(mostOfWindows(engine));
    await expectClean(engine);
    await engine.close();
  }
  // Of 13 blocks the last three are in the window when the chunk is done. The ten before share slots, of which each of five layers fills a fifth.
  expect(peaks).toEqual([13, 3 + 10 / 5]);
});

it.each<[string, SmallModel, ReusePolicy]>([
  ['windows', gemma, 'required'],
  ['optional windows beside recurrent state', hybrid, 'optional'],
])('%s are found by those who come behind, wherever they part, with drafts', async (_, small, policy) => {
  const cache = { policies: { key: policy, value: policy } };
  const engine = await make(small, { cache, speculation: { maxDrafts: 3 } });
  for (const length of [101, 101, 96, 63, 21]) {
    const other = { prompt: [...small.text.slice(0, length), 7, 8], maxNewTokens: 3 };
    expectSame(await ask(engine, other), await expected(small, other), `${length} tokens`);
  }
  // The second of them, and all that the first has left of the others.
  expect(engine.statistics().requests.hitTokens).toBeGreaterThan(101);
  await expectClean(engine);
  await engine.close();
});

it('several answers and beams part behind a chunk with scratch', async () => {
  const engine = await make(gemma);
  const { tokens } = await expected(gemma, request);
  const answers = await engine.completeSeveral(request, 2);
  expect(answers.map((answer) => answer.tokens)).toEqual([tokens, tokens]);
  const beams = await engine.beamSearch({ prompt: [...prompt, 9], beamWidth: 2, maxNewTokens: 2 });
  expect(beams.answers).toHaveLength(2);
  await expectClean(engine);
  await engine.close();
});
