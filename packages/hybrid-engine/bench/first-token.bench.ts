/// <reference types="node" />
/**
 * Time to the first token of a prompt: computed anew, found in the cache, and brought from stores outside of the process. All ways take turns in
 * one run, so that a busy machine is busy for all of them; read the ratios. A server is started here where one is installed. Reads files below the
 * root of the repository, where it is to be run.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NearPageStore, PageStoreConnector } from '@bufferwise/adapter-connectors';
import { FilePageStore } from '@bufferwise/adapter-connectors/file-store';
import { RedisPageStore } from '@bufferwise/adapter-connectors/redis-store';
import type { PageStore } from '@bufferwise/adapter-kit';
import { findServer, RedisProcess } from '@bufferwise-internal/services';
import { openGpu } from '@bufferwise-internal/webgpu-node';
import { HybridEngine } from '../src/engine/hybrid-engine.ts';
import { readModel } from '../src/model/model.ts';
import { modelFingerprint } from '../src/outside/model-fingerprint.ts';

export interface FirstTokenFigure {
  from: string;
  /** Of the prompt. */
  tokens: number | string;
  /** Of these not computed. */
  reused: number | string;
  /** Milliseconds to the first token, median. */
  firstTokenMs: number | string;
  /** The same, divided by that of computing. */
  ofComputing: number | string;
  /** Kibibytes that came from the store. */
  loadedKib: number | string;
  /** Prompt tokens from which on it is faster than computing. */
  breakEven: string;
}

/** The first ones have hardly more than a block. */
const LENGTHS = [18, 34, 64, 128, 256, 512] as const;
const TOKENS_PER_BLOCK = 16;
const ROUNDS = 5;
const DEVICE_BYTES = 64 << 20;
/** A store that is slow is to be seen, not given up. */
const PATIENCE_MS = 60_000;

/** One way to a first token. */
interface Way {
  readonly name: string;
  readonly engine: HybridEngine;
  readonly store: PageStore | undefined;
  /** Whether it may use what was computed before. */
  readonly isWarm: boolean;
  close(): Promise<void>;
}

interface Sample {
  readonly ms: number;
  readonly reused: number;
  readonly loadedBytes: number;
}

export default async function bench(): Promise<FirstTokenFigure[]> {
  const device = await (await openGpu()).requestDevice({ label: 'first token bench' });
  const { model, text } = demoModel();
  const folder = mkdtempSync(join(tmpdir(), 'bufferwise-first-token-'));
  const redis = findServer('redis') === undefined ? undefined : await RedisProcess.start();
  const fingerprint = modelFingerprint(model);

  async function way(name: string, isWarm: boolean, store?: PageStore): Promise<Way> {
    const connector =
      store && new PageStoreConnector(store, { timeouts: { lookupMs: PATIENCE_MS, loadMs: PATIENCE_MS, saveMs: PATIENCE_MS } });
    const outside = connector && {
      connector,
      modelFingerprint: fingerprint,
      lookupMs: PATIENCE_MS,
      minTokens: TOKENS_PER_BLOCK,
    };
    const engine = await HybridEngine.create({
      model,
      device,
      cache: { tokensPerBlock: TOKENS_PER_BLOCK, deviceBytes: DEVICE_BYTES },
      outside,
    });
    const close = async () => {
      await engine.close();
      await connector?.close();
      await store?.close();
    };
    return { name, engine, store, isWarm, close };
  }

  const ways = [
    await way('computed', false),
    await way('cache', true),
    await way('memory of the process', true, new NearPageStore({ quotaBytes: DEVICE_BYTES })),
    await way('disk', true, await FilePageStore.open(folder)),
    ...(redis === undefined
      ? []
      : [
          await way('Redis', true, await RedisPageStore.open({ server: { single: { url: redis.url } }, timeoutMs: PATIENCE_MS })),
        ]),
  ];
  try {
    const samples = new Map<string, Sample[]>();
    for (const length of LENGTHS) {
      const prompt = text.slice(0, length);
      // Leaves the pages behind, and warms up what is compiled at its first use.
      for (const each of ways) await answer(each, prompt, true);
      for (let round = 0; round < ROUNDS; round++) {
        for (const each of ways) {
          if (each.store !== undefined) each.engine.manager.clearReusableBlocks();
          const key = `${each.name} ${length}`;
          samples.set(key, [...(samples.get(key) ?? []), await answer(each, prompt, false)]);
        }
      }
    }
    return [...ways.flatMap(({ name }) => figuresOf(name, samples)), ...(redis === undefined ? [WITHOUT_SERVER] : [])];
  } finally {
    for (const each of ways) await each.close();
    await redis?.stop();
    rmSync(folder, { recursive: true, force: true });
    device.destroy();
  }
}

/** @param isFirst it computes, and leaves its pages for the others of its way */
async function answer({ engine, store, isWarm }: Way, prompt: readonly number[], isFirst: boolean): Promise<Sample> {
  const readBefore = store?.statistics().bytesRead ?? 0;
  const { report } = await engine.complete({ prompt, maxNewTokens: 1, lookup: isWarm && !isFirst, publish: isWarm });
  await engine.saved();
  return {
    ms: report.timeToFirstTokenMs,
    reused: report.reusedTokens,
    loadedBytes: (store?.statistics().bytesRead ?? 0) - readBefore,
  };
}

function figuresOf(name: string, samples: ReadonlyMap<string, readonly Sample[]>): FirstTokenFigure[] {
  const of = (from: string, length: number) => samples.get(`${from} ${length}`) as readonly Sample[];
  const ms = (from: string, length: number) => median(of(from, length).map((sample) => sample.ms));
  const ratios = LENGTHS.map((length) => ms(name, length) / ms('computed', length));
  return LENGTHS.map((length, i) => {
    const [{ reused, loadedBytes }] = of(name, length);
    return {
      from: name,
      tokens: length,
      reused,
      firstTokenMs: ms(name, length),
      ofComputing: ratios[i],
      loadedKib: loadedBytes / 1024,
      breakEven: name === 'computed' ? '' : breakEvenOf(ratios),
    };
  });
}

/** Where the ratio falls below 1 and stays there, on the straight line between two lengths. */
function breakEvenOf(ratios: readonly number[]): string {
  const lastSlower = ratios.findLastIndex((ratio) => ratio >= 1);
  if (lastSlower < 0) return `below ${LENGTHS[0]}`;
  if (lastSlower === ratios.length - 1) return `above ${LENGTHS[lastSlower]}`;
  const [from, to] = [LENGTHS[lastSlower], LENGTHS[lastSlower + 1]];
  const [above, below] = [ratios[lastSlower] - 1, 1 - ratios[lastSlower + 1]];
  return `about ${Math.round(from + ((to - from) * above) / (above + below))}`;
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
}

const WITHOUT_SERVER: FirstTokenFigure = {
  from: 'Redis: no redis-server or valkey-server is installed',
  ...{ tokens: '', reused: '', firstTokenMs: '', ofComputing: '', loadedKib: '', breakEven: '' },
};

function demoModel() {
  const file = (name: string) => readFileSync(`models/whaler-1m/${name}`);
  const model = readModel({
    config: file('config.json'),
    tokenizer: file('tokenizer.json'),
    weights: file('model.safetensors'),
  });
  const { prompts } = JSON.parse(file('expected.json').toString()) as { prompts: { ids: number[] }[] };
  const text = prompts.flatMap(({ ids }) => ids);
  const longest = Math.max(...LENGTHS);
  if (text.length < longest)
    throw new Error(`The texts of the demo model have ${text.length} tokens; the bench takes ${longest}.`);
  return { model, text };
}
