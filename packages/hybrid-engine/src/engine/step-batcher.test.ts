import type { KvCache } from '@bufferwise/cache-manager';
import { expect, test } from 'vitest';
import type { SequenceChunk } from './gpu-model.ts';
import { StepBatcher } from './step-batcher.ts';

const chunk = (numTokens: number, start = 0): SequenceChunk => ({
  cache: {} as KvCache,
  tokens: new Uint32Array(numTokens),
  start,
});

/** A model that notes which chunks ran together and answers each with its start position. */
function recordingModel() {
  const steps: number[][] = [];
  const run = async (chunks: readonly SequenceChunk[]) => {
    steps.push(chunks.map(({ start }) => start));
    return chunks.map(({ start }) => Float32Array.of(start));
  };
  return { steps, run };
}

test('chunks that are ready together share a step, and each request gets its own logits', async () => {
  const { steps, run } = recordingModel();
  const batcher = new StepBatcher(run, 8);
  const logits = await Promise.all([1, 2, 3].map((start) => batcher.add(chunk(2, start)).logits));
  expect(steps).toEqual([[1, 2, 3]]);
  expect(logits.map(([value]) => value)).toEqual([1, 2, 3]);
});

test('requests that go on after a step meet in the next one', async () => {
  const { steps, run } = recordingModel();
  const batcher = new StepBatcher(run, 8);
  const request = async (start: number) => {
    await batcher.add(chunk(1, start)).logits;
    await batcher.add(chunk(1, start + 10)).logits;
  };
  await Promise.all([request(1), request(2), request(3)]);
  expect(steps).toEqual([
    [1, 2, 3],
    [11, 12, 13],
  ]);
});

test('a step holds as many tokens as there is room for, in order of arrival', async () => {
  const { steps, run } = recordingModel();
  const batcher = new StepBatcher(run, 8);
  await Promise.all([5, 3, 1, 8].map((numTokens, i) => batcher.add(chunk(numTokens, i)).logits));
  expect(steps).toEqual([[0, 1], [2], [3]]);
});

test('a step that fails fails its own requests, and the next one runs', async () => {
  let calls = 0;
  const batcher = new StepBatcher(async (chunks) => {
    if (calls++ === 0) throw new Error('no device');
    return chunks.map(() => Float32Array.of(1));
  }, 4);
  const first = batcher.add(chunk(4));
  const second = batcher.add(chunk(4));
  await expect(first.logits).rejects.toThrow('no device');
  await expect(second.logits).resolves.toEqual(Float32Array.of(1));
});

test('the submission is told before the logits are there', async () => {
  let answer: (logits: Float32Array[]) => void = () => {};
  const batcher = new StepBatcher(() => new Promise((resolve) => (answer = resolve)), 4);
  const { submitted, logits } = batcher.add(chunk(1));
  await submitted;
  answer([Float32Array.of(7)]);
  await expect(logits).resolves.toEqual(Float32Array.of(7));
});
