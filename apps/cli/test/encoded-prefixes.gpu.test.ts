import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type EncodedStoreStatistics, type PageEncoding, PageStoreConnector } from '@bufferwise/adapter-connectors';
import { MemoryPageStore } from '@bufferwise/adapter-kit/memory';
import { type GenerationReport, HybridEngine, modelFingerprint } from '@bufferwise/hybrid-engine';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { readModelFolder } from '../src/input/model-folder.ts';

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });

const FOLDER = fileURLToPath(new URL('../../../models/whaler-1m/', import.meta.url));
const NUM_TOKENS = 24;

const device = await requestTestDevice();
const model = await readModelFolder(FOLDER);
const fingerprint = modelFingerprint(model);
/** Prompts with a prefix that is worth keeping: one is longer than the window by little, one by much. */
const prompts: number[][] = JSON.parse(await readFile(`${FOLDER}expected.json`, 'utf8'))
  .prompts.map(({ ids }: { ids: number[] }) => ids)
  .filter((ids: number[]) => [211, 545].includes(ids.length));

interface Answer {
  tokens: number[];
  /** In front of each token. */
  logits: Float32Array[];
  report: GenerationReport;
}

/** An engine of its own, as in another process, on a store that is shared. */
async function withEngine<T>(
  store: MemoryPageStore,
  encoding: PageEncoding | undefined,
  use: (engine: HybridEngine, connector: PageStoreConnector) => Promise<T>,
): Promise<T> {
  const connector = new PageStoreConnector(store, { encoding });
  const engine = await HybridEngine.create({ model, device, outside: { connector, modelFingerprint: fingerprint } });
  try {
    return await use(engine, connector);
  } finally {
    await engine.saved();
    await engine.close();
    await connector.close();
  }
}

/** Answers a prompt; with `forced`, with these tokens, whatever the model says. */
async function answer(engine: HybridEngine, prompt: number[], forced?: readonly number[]): Promise<Answer> {
  const logits: Float32Array[] = [];
  const { tokens, report } = await engine.complete({
    prompt,
    maxNewTokens: NUM_TOKENS,
    onLogits(all) {
      const token = forced?.[logits.length];
      logits.push(all.slice());
      if (token === undefined) return;
      const kept = all[token];
      all.fill(Number.NEGATIVE_INFINITY);
      all[token] = kept;
    },
  });
  return { tokens, logits, report };
}

let cold: Answer[];
beforeAll(async () => {
  cold = await withEngine(new MemoryPageStore(), undefined, async (engine) => {
    const answers: Answer[] = [];
    for (const prompt of prompts) answers.push(await answer(engine, prompt));
    return answers;
  });
});

/** Fills a store in one process, and answers from it in others: freely, and with the tokens of the cold answers. */
async function warm(encoding: PageEncoding | undefined) {
  const answers: { free: Answer; forced: Answer; counts: EncodedStoreStatistics }[] = [];
  for (const [i, prompt] of prompts.entries()) {
    const store = new MemoryPageStore();
    const counts = await withEngine(store, encoding, async (engine, connector) => {
      await answer(engine, prompt);
      await engine.saved();
      return connector.store.statistics() as EncodedStoreStatistics;
    });
    const free = await withEngine(store, encoding, (engine) => answer(engine, prompt));
    const forced = await withEngine(store, encoding, (engine) => answer(engine, prompt, cold[i].tokens));
    answers.push({ free, forced, counts });
  }
  return answers;
}

const largest = (numbers: readonly number[]) => numbers.reduce((a, b) => Math.max(a, b), 0);
const difference = (a: Float32Array, b: Float32Array) => a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), 0);
const percent = (part: number, whole: number) => `${((100 * part) / whole).toFixed(1)} %`;

describe('answers of the demo model behind a prefix from a store', () => {
  it('are the same with compressed pages, and the pages are smaller', async () => {
    const answers = await warm({});
    for (const [i, { free, counts }] of answers.entries()) {
      expect(free.report.reusedTokens).toBeGreaterThan(prompts[i].length - 32);
      expect(free.tokens).toEqual(cold[i].tokens);
      expect(counts.encodedBytesWritten).toBeLessThan(0.95 * counts.bytesWritten);
      console.log(`compressed: ${counts.bytesWritten} bytes in ${percent(counts.encodedBytesWritten, counts.bytesWritten)}`);
    }
  });

  it('are nearly the same with keys and values in 8 bits', async () => {
    const answers = await warm({ int8: true });
    for (const [i, { free, forced, counts }] of answers.entries()) {
      expect(free.report.reusedTokens).toBeGreaterThan(prompts[i].length - 32);
      const differences = forced.logits.map((logits, j) => difference(logits, cold[i].logits[j]));
      const size = largest(cold[i].logits.map((logits) => largest([...logits].map(Math.abs))));
      const same = free.tokens.findIndex((token, j) => token !== cold[i].tokens[j]);
      console.log(
        `int8: ${prompts[i].length} tokens, ${counts.bytesWritten} bytes in ${percent(counts.encodedBytesWritten, counts.bytesWritten)}; ` +
          `logits up to ${size.toFixed(1)} differ by ${largest(differences).toFixed(4)}; ${same < 0 ? NUM_TOKENS : same} of ${NUM_TOKENS} tokens the same`,
      );
      expect(largest(differences)).toBeGreaterThan(0);
      expect(largest(differences)).toBeLessThan(0.05 * size);
    }
  });
});
