import { expect, test } from 'vitest';
import { greedy, type OnnxDecoderError } from '../src/index.ts';
import { createRig, leaveBehind, someTokens } from './support/rig.ts';

const PROMPT = someTokens(11);

async function collect(answer: AsyncIterable<number>): Promise<number[]> {
  const tokens: number[] = [];
  for await (const token of answer) tokens.push(token);
  return tokens;
}

test('a warm answer is the cold one, token by token', async () => {
  const rig = await createRig();
  const cold = await collect(rig.decoder.generate({ tokens: PROMPT, maxTokens: 20 }));
  expect(cold).toHaveLength(20);
  rig.session.runs.length = 0;
  expect(await collect(rig.decoder.generate({ tokens: PROMPT, maxTokens: 20 }))).toEqual(cold);
  expect(rig.session.runs).toEqual(Array.from({ length: 20 }, () => 1));
  expect(rig.manager.inspect().requests.filter(({ status }) => status === 'active')).toEqual([]);
});

test('greedy takes the highest logit, each step from what came before', async () => {
  const rig = await createRig();
  const answer = await collect(rig.decoder.generate({ tokens: PROMPT, maxTokens: 5 }));
  for (let i = 0; i < answer.length; i++)
    expect(greedy(await leaveBehind(rig, [...PROMPT, ...answer.slice(0, i)]))).toBe(answer[i]);
  expect(greedy(Float32Array.of(-3, -1, -1, -2))).toBe(1);
});

test('a sampler of the caller chooses, and stop tokens end the answer without being part of it', async () => {
  const rig = await createRig();
  let next = 3;
  const sample = async (logits: Float32Array) => {
    expect(logits).toHaveLength(32);
    return next++;
  };
  expect(await collect(rig.decoder.generate({ tokens: PROMPT, maxTokens: 9, sample, stopTokens: [7] }))).toEqual([3, 4, 5, 6]);
});

test('whoever leaves the loop early, or aborts, leaves nothing behind but pages', async () => {
  const rig = await createRig();
  for await (const _ of rig.decoder.generate({ tokens: PROMPT, maxTokens: 9 })) break;
  const controller = new AbortController();
  const tokens: number[] = [];
  const answer = (async () => {
    for await (const token of rig.decoder.generate({ tokens: PROMPT, maxTokens: 9, signal: controller.signal })) {
      tokens.push(token);
      if (tokens.length === 3) controller.abort(new Error('enough'));
    }
  })();
  await expect(answer).rejects.toThrow('enough');
  expect(tokens).toHaveLength(3);
  expect(rig.manager.storageStatistics(0)[0].unavailable).toBe(0);
  expect(rig.manager.probeReuse(PROMPT)).toBe(PROMPT.length);
});

test('a generation of no tokens, from no tokens, or with a sampler that chooses none is refused', async () => {
  const rig = await createRig();
  const code = (answer: AsyncIterable<number>) =>
    collect(answer).then(
      () => undefined,
      (error: OnnxDecoderError) => error.code,
    );
  expect(await code(rig.decoder.generate({ tokens: PROMPT, maxTokens: 0 }))).toBe('onnx-options');
  expect(await code(rig.decoder.generate({ tokens: [], maxTokens: 1 }))).toBe('onnx-tokens');
  expect(await code(rig.decoder.generate({ tokens: PROMPT, maxTokens: 2, sample: () => 99 }))).toBe('onnx-tokens');
});
