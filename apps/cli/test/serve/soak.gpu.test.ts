import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it, vi } from 'vitest';
import { GRANITE, startTestServer } from '../support/test-server.ts';

/** A longer run is `BUFFERWISE_SOAK_SECONDS=3600`. */
const SECONDS = Number(process.env.BUFFERWISE_SOAK_SECONDS ?? 10);
const NUM_CLIENTS = 12;

vi.setConfig({ testTimeout: 300_000 + SECONDS * 1_000 });

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** Bytes that are in use once everything is gone that nobody needs. */
function usedBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** Numbers that follow from a seed, from 0 on, below 1. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

it('serves clients who come, share, leave and stop reading, and holds nothing when they have gone', async () => {
  // Little memory: answers make way for others, and pages are evicted.
  const served = await startTestServer({
    model: GRANITE,
    limits: { maxActive: 6, maxQueue: 4, stallMs: 2_000 },
    engine: { cache: { deviceBytes: 8 * 2 ** 20 } },
  });
  const outcomes = { whole: 0, left: 0, refused: 0 };

  async function client(seed: number, until: number): Promise<void> {
    const random = numbers(seed);
    while (performance.now() < until) {
      const beginning = `conversation ${Math.floor(random() * 4)} `.repeat(1 + Math.floor(random() * 8));
      const body = {
        prompt: beginning + Math.floor(random() * 10),
        max_tokens: 1 + Math.floor(random() * 40),
        n: 1 + Math.floor(random() * 2),
        stream: random() < 0.7,
        ignore_eos: true,
        temperature: 1,
      };
      const leaves = random() < 0.5;
      const controller = new AbortController();
      const numChunks = Math.floor(random() * 20);
      const timer = leaves ? setTimeout(() => controller.abort(), random() * 400) : undefined;
      try {
        const response = await served.post('/v1/completions', body, { signal: controller.signal });
        if (response.status !== 200) {
          expect(response.status).toBe(429);
          outcomes.refused++;
          await response.text();
          continue;
        }
        const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>;
        // Node ends a body with its request's signal only while the response is in use: once that is collected, nobody would end this read.
        controller.signal.addEventListener('abort', () => void reader.cancel().catch(() => {}));
        for (let i = 0; !(await reader.read()).done; i++) if (leaves && i === numChunks) controller.abort();
        controller.signal.throwIfAborted();
        outcomes.whole++;
      } catch (error) {
        if (!controller.signal.aborted) throw error;
        outcomes.left++;
      } finally {
        clearTimeout(timer);
      }
    }
  }

  /** Has all clients talk for a while. Returns what is in use when they have gone. */
  async function talk(seconds: number, firstSeed: number): Promise<number> {
    const until = performance.now() + seconds * 1_000;
    await Promise.all(Array.from({ length: NUM_CLIENTS }, (_, i) => client(firstSeed + i, until)));
    await served.expectIdle();
    return usedBytes();
  }

  const afterWarmUp = await talk(SECONDS / 2, 1);
  const atTheEnd = await talk(SECONDS / 2, 1000);
  // Code that was compiled late and connections that are kept may take a little.
  expect(atTheEnd - afterWarmUp).toBeLessThan(8 * 2 ** 20);
  for (const [name, count] of Object.entries(outcomes)) expect(count, name).toBeGreaterThan(0);

  const { answers, requests, cache } = await (await served.get('/inspect')).json();
  expect([requests, answers]).toEqual([0, { admitted: 0, active: 0, waiting: 0 }]);
  expect(cache.pages.filter(({ holds }: { holds: number }) => holds > 0)).toEqual([]);
  // Everything that is left may be dropped.
  served.engine.manager.clearReusableBlocks();
  for (const { free, total } of served.engine.storage()) expect(free).toBe(total);
  const health = await (await served.get('/health')).json();
  expect(health).toMatchObject({ status: 'ready', requests: 0, answers: 0 });
  await served.close();
});
