/// <reference types="node" />
/**
 * What each policy buys: bytes that stay behind for others, bytes of a request, and what the second and third request on a prefix reuse and
 * compute again. Everything is counted and nothing is timed, so a software device says the same as any other. Reads files below the root of
 * the repository, where it is to be run.
 */
import { readFileSync } from 'node:fs';
import { defineCacheConfig } from '@bufferwise/core-policy';
import { explain } from '@bufferwise/scratch-allocator';
import { openGpu } from '@bufferwise-internal/webgpu-node';
import { cacheLayers } from '../src/description/cache-layers.ts';
import { HybridEngine } from '../src/engine/hybrid-engine.ts';
import { type PolicyChoice, withPolicies } from '../src/engine/policy-choice.ts';
import { readGgufModel } from '../src/gguf/gguf-model.ts';
import type { EngineModel } from '../src/model/engine-model.ts';
import { readModel } from '../src/model/model.ts';

export interface PolicyFigure {
  model: string;
  policies: string;
  /** Kibibytes of one prefix end: what others need of windows and state to continue there. Full attention is kept once for all ends. */
  keptKibPerEnd: number;
  /** Kibibytes that a first request of `PROMPT_TOKENS` tokens leaves behind for others, all ends and full attention included. */
  leftKib: number;
  /** Kibibytes on the device of a request of `REQUEST_TOKENS` tokens. */
  requestKib: number;
  /** Such requests that fit at a time. */
  fits: number;
  /** Tokens of the second request, which goes on where the first ended, and of the third, which is the first again. */
  reused2: number;
  again2: number;
  reused3: number;
  again3: number;
}

export const columns = {
  keptKibPerEnd: { unit: 'KiB', better: 'lower' },
  leftKib: { unit: 'KiB', better: 'lower' },
  requestKib: { unit: 'KiB', better: 'lower' },
  fits: { unit: 'requests', better: 'higher' },
  reused2: { unit: 'tokens', better: 'higher' },
  again2: { unit: 'tokens', better: 'lower' },
  reused3: { unit: 'tokens', better: 'higher' },
  again3: { unit: 'tokens', better: 'lower' },
} satisfies Partial<Record<keyof PolicyFigure, object>>;

const TOKENS_PER_BLOCK = 16;
const DEVICE_BYTES = 32 << 20;
const CHUNK_TOKENS = 64;
const PROMPT_TOKENS = 250;
const REQUEST_TOKENS = 2048;
/** Of the demo model: short steps go through a replay ring. */
const DRAFTS = 3;

interface Subject {
  readonly name: string;
  readonly model: EngineModel;
  readonly text: readonly number[];
  readonly maxDrafts?: number;
}

export default async function bench(): Promise<PolicyFigure[]> {
  const device = await (await openGpu()).requestDevice({ label: 'policies bench' });
  const figures: PolicyFigure[] = [];
  for (const subject of [demoModel(), gemma()]) {
    for (const [policies, choice] of choicesFor(subject)) figures.push(await measure(device, subject, policies, choice));
  }
  device.destroy();
  return figures;
}

function demoModel(): Subject {
  const file = (name: string) => readFileSync(`models/whaler-1m/${name}`);
  const model = readModel({
    config: file('config.json'),
    tokenizer: file('tokenizer.json'),
    weights: file('model.safetensors'),
  });
  const { prompts } = JSON.parse(file('expected.json').toString()) as { prompts: { name: string; ids: number[] }[] };
  const text = prompts.flatMap(({ name, ids }) => (name === 'long' ? ids : []));
  return { name: 'whaler', model, text, maxDrafts: DRAFTS };
}

function gemma(): Subject {
  const file = (name: string) => readFileSync(`internal/test-kit/oracle-models/gemma3-101.${name}`);
  const { prompts } = JSON.parse(file('expected.json').toString()) as { prompts: { prompt: number[] }[] };
  return { name: 'gemma3', model: readGgufModel(file('gguf')), text: prompts.flatMap(({ prompt }) => prompt).slice(-300) };
}

/** Everything required is what managers of whole layers do; the others split the layers' buffers by use. */
function choicesFor({ model, maxDrafts }: Subject): [string, PolicyChoice][] {
  const { layers } = model.description;
  const windows = (policy: 'optional' | 'private') => (layerId: number) => {
    const { mixer } = layers[layerId];
    return mixer.kind === 'attention' && mixer.windowSize !== undefined ? policy : undefined;
  };
  const recurrent = layers.some(({ mixer }) => mixer.kind === 'mamba2');
  const state = (policy: 'optional' | 'private') => ({ ssm_state: policy, conv_state: policy });
  return [
    ['whole: everything required', () => 'required'],
    ...(maxDrafts === undefined ? [] : [['split: replay ring private', {}] as [string, PolicyChoice]]),
    ['split: windows optional', windows('optional')],
    ['split: windows private', windows('private')],
    ...(recurrent
      ? ([
          ['split: state optional', state('optional')],
          ['split: state private', state('private')],
        ] as [string, PolicyChoice][])
      : []),
  ];
}

async function measure(device: GPUDevice, subject: Subject, policies: string, choice: PolicyChoice): Promise<PolicyFigure> {
  const { name, model, text, maxDrafts } = subject;
  const engine = await HybridEngine.create({
    model,
    device,
    chunkTokens: CHUNK_TOKENS,
    ...(maxDrafts !== undefined && { speculation: { maxDrafts } }),
    cache: { tokensPerBlock: TOKENS_PER_BLOCK, deviceBytes: DEVICE_BYTES, policies: choice },
  });
  const prompt = text.slice(0, PROMPT_TOKENS);
  const ask = (tokens: readonly number[]) => engine.complete({ prompt: tokens, maxNewTokens: 2 });
  await ask(prompt);
  const leftBytes = engine.storage().reduce((sum, { evictable, slotBytes }) => sum + evictable * slotBytes, 0);
  const { report: second } = await ask(text.slice(0, PROMPT_TOKENS + 30));
  const { report: third } = await ask(prompt);
  await engine.close();
  const rows = maxDrafts === undefined ? undefined : { rows: 2 * (maxDrafts + 1), maxTokens: maxDrafts + 1 };
  const whole = defineCacheConfig({
    tokensPerBlock: TOKENS_PER_BLOCK,
    layers: cacheLayers(model.description, { tokensPerBlock: TOKENS_PER_BLOCK, ...(rows && { replay: rows }) }),
    tiers: [{ tier: 'device', quota: DEVICE_BYTES }],
    typicalStep: { kvCaches: [{ capacity: REQUEST_TOKENS, historyLength: REQUEST_TOKENS - 1 }] },
  });
  const config = defineCacheConfig({ ...whole, layers: withPolicies(whole, choice) });
  const { groups, totals } = explain(config, { lengths: [REQUEST_TOKENS] });
  const [request] = totals.requests;
  const published = groups.filter((group) => group.policy !== 'private');
  const endBytes = published.reduce((sum, { maxRequestBytes }) => sum + (maxRequestBytes ?? 0), 0);
  return {
    model: name,
    policies,
    keptKibPerEnd: endBytes / 1024,
    leftKib: leftBytes / 1024,
    requestKib: request.bytes / 1024,
    fits: request.numFitting,
    reused2: second.reusedTokens,
    again2: second.recomputedTokens,
    reused3: third.reusedTokens,
    again3: third.recomputedTokens,
  };
}
