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
let cold: number[][] | undefined;

/** Answers of an engine with such policies, the second and third one warm. */
async function answers(policies: PolicyChoice) {
  const engine = await HybridEngine.create({ model, device, chunkTokens: 32, cache: { policies }, debugChecks: true });
  try {
    const ask = (prompt: readonly number[]) => engine.complete({ prompt, maxNewTokens: 6 });
    const all = [await ask(PROMPT), await ask(LONGER), await ask(PROMPT)];
    expect(engine.statistics().openRequests).toBe(0);
    return { tokens: all.map(({ tokens }) => tokens), reports: all.map(({ report }) => report) };
  } finally {
    await engine.close();
  }
}

describe('the same tokens, warm and cold, and as many computed as have to be,', () => {
  it.each<[string, PolicyChoice, number[], number[]]>([
    ['everything required', {}, [150, 149], [0, 0]],
    ['state optional', { ssm_state: 'optional', conv_state: 'optional' }, [150, 149], [0, 0]],
  ])('%s', async (_, policies, reused, recomputed) => {
    cold ??= (await answers({ key: 'private', value: 'private' })).tokens;
    const { tokens, reports } = await answers(policies);
    expect(tokens).toEqual(cold);
    expect(reports.slice(1).map(({ reusedTokens }) => reusedTokens)).toEqual(reused);
    expect(reports.slice(1).map(({ recomputedTokens }) => recomputedTokens)).toEqual(recomputed);
  });
  it.each<[string, PolicyChoice]>([
    ['windows private', (layerId: number) => (model.config.layerPattern[layerId] === 'S' ? 'private' : undefined)],
    ['window of layer 1 private', { '1.key': 'private', '1.value': 'private' }],
    ['values of windows private', { '1.value': 'private', '5.value': 'private' }],
    ['window of layer 5 private', { '5.key': 'private', '5.value': 'private' }],
    ['windows optional', { '1.key': 'optional', '1.value': 'optional', '5.key': 'optional', '5.value': 'optional' }],
    ['tail private', { conv_state: 'private' }],
    ['state private', { ssm_state: 'private' }],
    ['full private', { '3.key': 'private' }],
  ])('%s', async (name, policies) => {
    cold ??= (await answers({ key: 'private', value: 'private' })).tokens;
    const { tokens, reports } = await answers(policies);
    console.log(
      name,
      reports.map(({ reusedTokens, computedTokens, recomputedTokens }) => [reusedTokens, computedTokens, recomputedTokens]),
    );
    expect(tokens).toEqual(cold);
  });
});
