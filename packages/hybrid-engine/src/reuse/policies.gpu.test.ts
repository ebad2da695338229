import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, it, vi } from 'vitest';
import { HybridEngine } from '../engine/hybrid-engine.ts';
import type { PolicyChoice } from '../engine/policy-choice.ts';
import { readModel } from '../model/model.ts';
import { type ExpectedAnswer, whalerAnswers, whalerFiles } from '../model/testing/whaler-files.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 });

const device = await requestTestDevice();
// Windows so short that a prefix is longer than what they look back at, and no sinks, whose pages are live for ever.
const files = whalerFiles();
const config = JSON.parse(new TextDecoder().decode(files.config));
const model = readModel({ ...files, config: encode({ ...config, sliding_window: 20, num_sink_tokens: 0 }) });
function encode(json: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(json));
}
const { ids } = whalerAnswers().find(({ name }) => name === 'long') as ExpectedAnswer;
const PROMPT = ids.slice(0, 150);
const LONGER = ids.slice(0, 170);

/** What the model answers without a cache that others have written in. */
let cold: Awaited<ReturnType<typeof answers>> | undefined;

/** Answers of an engine with such policies, the second and third one warm. */
async function answers(policies: PolicyChoice) {
  const engine = await HybridEngine.create({ model, device, chunkTokens: 32, cache: { policies }, debugChecks: true });
  try {
    const ask = (prompt: readonly number[]) => engine.complete({ prompt, maxNewTokens: 6 });
    const all = [await ask(PROMPT), await ask(LONGER), await ask(PROMPT)];
    expect(engine.statistics().openRequests).toBe(0);
    return {
      tokens: all.map(({ tokens }) => tokens),
      logProbabilities: all.flatMap((each) => each.logProbabilities),
      reports: all.map(({ report }) => report),
    };
  } finally {
    await engine.close();
  }
}

const WINDOW_1 = { '1.key': 'private', '1.value': 'private' } as const;
const isWindow = (layerId: number) => model.config.layerPattern[layerId] === 'S';

describe('the same tokens, warm and cold, and as many computed as have to be,', () => {
  it.each<[string, PolicyChoice, number[], number[]]>([
    ['everything required', {}, [150, 149], [0, 0]],
    ['state optional', { ssm_state: 'optional', conv_state: 'optional' }, [150, 149], [0, 0]],
    [
      'windows optional: a match ends with a block',
      (layerId) => (isWindow(layerId) ? 'optional' : undefined),
      [144, 144],
      [0, 0],
    ],
    ['the first window private: a run over the last of it', WINDOW_1, [150, 149], [22, 21]],
    ['the last window private', { '5.key': 'private', '5.value': 'private' }, [150, 149], [22, 21]],
    [
      'two windows private: state in between is inexact',
      (layerId) => (isWindow(layerId) ? 'private' : undefined),
      [0, 0],
      [0, 0],
    ],
    ['tails private: state above is inexact', { conv_state: 'private' }, [0, 0], [0, 0]],
    ['state private', { ssm_state: 'private' }, [0, 0], [0, 0]],
    ['full attention private', { '3.key': 'private' }, [0, 0], [0, 0]],
  ])('%s', async (_, policies, reused, recomputed) => {
    cold ??= await answers({ key: 'private', value: 'private' });
    const { tokens, logProbabilities, reports } = await answers(policies);
    expect(tokens).toEqual(cold.tokens);
    // A window that was read where there is no page may not change a token, but it changes this.
    const differences = logProbabilities.map((value, i) => Math.abs(value - (cold?.logProbabilities[i] ?? Number.NaN)));
    expect(Math.max(...differences)).toBeLessThan(1e-4);
    expect(reports.slice(1).map(({ reusedTokens }) => reusedTokens)).toEqual(reused);
    expect(reports.slice(1).map(({ recomputedTokens }) => recomputedTokens)).toEqual(recomputed);
  });
});
