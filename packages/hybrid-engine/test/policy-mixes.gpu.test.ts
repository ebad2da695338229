import type { ReusePolicy } from '@bufferwise/core-policy';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import fc from 'fast-check';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { HybridEngine } from '../src/engine/hybrid-engine.ts';
import { ask, ColdAnswers, expectClean, expectSame } from './support/answers.ts';
import { expectedReuse } from './support/expected-reuse.ts';
import { oracleModel, type SmallModel, shortSightedWhaler } from './support/small-models.ts';

vi.setConfig({ testTimeout: 600_000, hookTimeout: 120_000 });

const device = await requestTestDevice();
const TOKENS_PER_BLOCK = 8;
const CHUNK_TOKENS = 16;
const MAX_NEW_TOKENS = 2;
const POLICIES: readonly ReusePolicy[] = ['required', 'optional', 'private'];

const MODELS: Record<string, SmallModel> = {
  llama: oracleModel('llama-103'),
  gemma3: oracleModel('gemma3-101'),
  mamba2: oracleModel('mamba2-101'),
  granitehybrid: oracleModel('granitehybrid-101'),
  whaler: shortSightedWhaler(),
};
const cold = Object.fromEntries(Object.entries(MODELS).map(([name, model]) => [name, new ColdAnswers(model, device)]));
afterAll(async () => {
  for (const answers of Object.values(cold)) await answers.close();
});

type Mix = Readonly<Record<string, ReusePolicy>>;
type PolicyOf = (layerId: number, role: string) => ReusePolicy;
const policyIn =
  (mix: Mix): PolicyOf =>
  (layerId, role) =>
    mix[`${layerId}.${role}`] ?? mix[role] ?? 'required';

/** All mixes of the parts named, where `a+b` go together. */
function allMixes(parts: readonly string[]): Mix[] {
  return parts.reduce<Mix[]>(
    (mixes, part) =>
      mixes.flatMap((mix) =>
        POLICIES.map((policy) => ({ ...mix, ...Object.fromEntries(part.split('+').map((each) => [each, policy])) })),
      ),
    [{}],
  );
}

function create({ model }: SmallModel, policies: PolicyOf): Promise<HybridEngine> {
  return HybridEngine.create({
    model,
    device,
    chunkTokens: CHUNK_TOKENS,
    stepTokens: 128,
    cache: { tokensPerBlock: TOKENS_PER_BLOCK, deviceBytes: 24 << 20, policies },
    debugChecks: true,
  });
}

const commonPrefix = (a: readonly number[], b: readonly number[]) => {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return length;
};

/** Runs a prompt cold, then itself and others that begin with it warm, all on one engine. */
async function expectWarmAsCold(name: string, policyOf: PolicyOf, mix: string): Promise<void> {
  const small = MODELS[name];
  const prompt = small.text.slice(0, 61);
  const engine = await create(small, policyOf);
  try {
    const asked = { prompt, maxNewTokens: MAX_NEW_TOKENS };
    const first = await ask(engine, asked);
    expectSame(first, await cold[name].to(asked), 'cold');
    expect(first.report).toMatchObject({ reusedTokens: 0, computedTokens: 61, recomputedTokens: 0 });
    const published = [...prompt, ...first.tokens.slice(0, -1)];
    // The prompt again, one that goes on where it ends, and one that parts from it inside a block.
    const others = [prompt, [...prompt, ...small.text.slice(100, 107)], [...prompt.slice(0, 43), 11, 12, 13]];
    for (const other of others) {
      const request = { prompt: other, maxNewTokens: MAX_NEW_TOKENS };
      const found = await ask(engine, { ...request, publish: false });
      const expected = expectedReuse({
        model: small.model.description,
        policyOf,
        tokensPerBlock: TOKENS_PER_BLOCK,
        chunkTokens: CHUNK_TOKENS,
        publishedPrompt: prompt.length,
        publishedTokens: published.length,
        promptLength: other.length,
        path: commonPrefix(published, other),
      });
      const what = `${mix}, prompt of ${other.length}, reused ${found.report.reusedTokens}, again ${found.report.recomputedTokens}`;
      expectSame(found, await cold[name].to(request), what);
      expect(found.report, what).toMatchObject({ ...expected, computedTokens: other.length - expected.reusedTokens });
    }
    await expectClean(engine);
  } finally {
    await engine.close();
  }
}
describe('a warm answer is the cold one, and as much is computed as has to be,', () => {
  it.each<[string, readonly string[]]>([
    ['llama', ['key', 'value']],
    ['gemma3', ['key', 'value']],
    ['gemma3', ['4.key', '5.key+5.value']],
    ['gemma3', ['0.key+0.value', '1.key', '3.value']],
    ['mamba2', ['ssm_state', 'conv_state']],
    ['granitehybrid', ['key', 'value', 'ssm_state+conv_state']],
    ['granitehybrid', ['1.ssm_state', '3.conv_state']],
    ['whaler', ['1.key', '5.value', 'ssm_state+conv_state']],
    ['whaler', ['0.conv_state', '5.key+5.value']],
  ])('with every mix of policies of %s in %j', async (name, parts) => {
    for (const mix of allMixes(parts)) await expectWarmAsCold(name, policyIn(mix), JSON.stringify(mix));
  });
});

describe('whatever is optional or private, down to single buffers of single layers,', () => {
  it.each(Object.keys(MODELS))('answers of %s are the same', async (name) => {
    const { layers } = MODELS[name].model.description;
    const names = layers.flatMap(({ mixer }, layerId) =>
      (mixer.kind === 'attention' ? ['key', 'value'] : ['ssm_state', 'conv_state']).map((role) => `${layerId}.${role}`),
    );
    // Most are required, or next to nothing would be reused.
    const policy = fc.constantFrom<ReusePolicy>('required', 'required', 'required', 'required', 'optional', 'private');
    const anyMix = fc
      .tuple(...names.map(() => policy))
      .map((policies): Mix => Object.fromEntries(names.map((each, i) => [each, policies[i]])));
    await fc.assert(
      fc.asyncProperty(anyMix, (mix) => expectWarmAsCold(name, policyIn(mix), JSON.stringify(mix))),
      { numRuns: Number(process.env.BUFFERWISE_PROPERTY_RUNS ?? 4), endOnFailure: true },
    );
  });
});

describe('from every match length the answer is that of no match,', () => {
  it.each<[string, Mix[]]>([
    [
      'granitehybrid',
      [
        {},
        { ssm_state: 'optional', conv_state: 'optional' },
        { key: 'optional', value: 'optional' },
        { '3.conv_state': 'private' },
      ],
    ],
    ['gemma3', [{}, { '4.key': 'private' }, { '3.value': 'optional', '4.key': 'private' }, { '5.key': 'optional' }]],
  ])('with mixes of %s', async (name, mixes) => {
    const small = MODELS[name];
    const prompt = small.text.slice(0, 45);
    for (const mix of mixes) {
      const engine = await create(small, policyIn(mix));
      const { tokens } = await ask(engine, { prompt, maxNewTokens: MAX_NEW_TOKENS });
      const published = [...prompt, ...tokens.slice(0, -1)];
      const lengths = Array.from({ length: prompt.length + 1 }, (_, i) => i);
      await Promise.all(
        lengths.map(async (length) => {
          const reader = [...prompt.slice(0, length), 7, 300, 11];
          const found = await ask(engine, { prompt: reader, maxNewTokens: 2, publish: false });
          const what = `${JSON.stringify(mix)}, ${length} tokens in common`;
          expectSame(found, await cold[name].to({ prompt: reader, maxNewTokens: 2 }), what);
          const expected = expectedReuse({
            ...{
              model: small.model.description,
              policyOf: policyIn(mix),
              tokensPerBlock: TOKENS_PER_BLOCK,
              chunkTokens: CHUNK_TOKENS,
            },
            ...{ publishedPrompt: prompt.length, publishedTokens: published.length, promptLength: reader.length },
            path: commonPrefix(published, reader),
          });
          expect(found.report, what).toMatchObject(expected);
        }),
      );
      await expectClean(engine);
      await engine.close();
    }
  });
});
