import type { InferenceSession, Tensor } from 'onnxruntime-common';
import { expect, test } from 'vitest';
import { cacheLayers, onnxCacheLayers } from './cache-layers.ts';
import { readDecoderModel } from './decoder-model.ts';

type Shape = (number | string)[];
type Values = Record<string, [type: Tensor.Type, shape: Shape]>;

const KV: Shape = ['batch_size', 3, 'past_sequence_length', 64];
const IDS: Shape = ['batch_size', 'sequence_length'];

function decoder({ inputs = {}, outputs = {}, without = [] }: { inputs?: Values; outputs?: Values; without?: string[] } = {}) {
  const metadata = (values: Values): InferenceSession.ValueMetadata[] =>
    Object.entries(values)
      .filter(([name]) => !without.includes(name))
      .map(([name, [type, shape]]) => ({ name, isTensor: true, type, shape }));
  const kv = (prefix: string): Values =>
    Object.fromEntries([0, 1].flatMap((i) => ['key', 'value'].map((role) => [`${prefix}.${i}.${role}`, ['float32', KV]])));
  return {
    inputMetadata: metadata({ input_ids: ['int64', IDS], attention_mask: ['int64', IDS], ...kv('past_key_values'), ...inputs }),
    outputMetadata: metadata({ logits: ['float32', [...IDS, 1000]], ...kv('present'), ...outputs }),
  };
}

const refusal = (valueName: string, why: RegExp) =>
  expect.objectContaining({ code: 'onnx-model', valueName, message: expect.stringMatching(why) });

function expectRefused(changes: Parameters<typeof decoder>[0], valueName: string, why: RegExp): void {
  let error: unknown;
  try {
    readDecoderModel(decoder(changes));
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toEqual(refusal(valueName, why));
}

test('layers, heads, sizes and optional inputs are read from the metadata', () => {
  const model = readDecoderModel(decoder({ inputs: { position_ids: ['int64', IDS], num_logits_to_keep: ['int64', []] } }));
  expect(model).toMatchObject({
    takesMask: true,
    takesPositions: true,
    takesCacheBranch: false,
    numLogitsRank: 0,
    vocabSize: 1000,
  });
  expect(model.kvTensors.map(({ past }) => past)).toEqual(
    [0, 1].flatMap((i) => [`past_key_values.${i}.key`, `past_key_values.${i}.value`]),
  );
  expect(cacheLayers(model, 16)[1]).toEqual({
    type: 'attention',
    layerId: 1,
    buffers: [
      { role: 'key', size: 3 * 16 * 64 * 4 },
      { role: 'value', size: 3 * 16 * 64 * 4 },
    ],
  });
});

test('layers may differ in heads and sizes, keys from values, and float16 takes half of the bytes', () => {
  const half = (shape: Shape): [Tensor.Type, Shape] => ['float16', shape];
  const layers = onnxCacheLayers(
    decoder({
      inputs: {
        'past_key_values.1.key': half(['b', 1, 'p', 32]),
        'past_key_values.1.value': half([1, 1, -1, 16]),
      },
      outputs: { 'present.1.key': half(['b', 1, 't', 32]), 'present.1.value': half(['b', 1, 't', 16]) },
    }),
    8,
  );
  expect(layers[1].buffers.map(({ size }) => size)).toEqual([8 * 32 * 2, 8 * 16 * 2]);
});

test('recurrent state among the inputs is refused, not ignored', () => {
  for (const name of ['past_conv.0', 'past_ssm.3', 'past_key_values.2.conv_state', 'past_recurrent.1', 'rwkv_state'])
    expectRefused({ inputs: { [name]: ['float32', ['b', 4, 4]] } }, name, /recurrent state/);
});

test('inputs that nobody knows how to feed are refused, with the reason', () => {
  expectRefused({ inputs: { 'past_key_values.0.encoder.key': ['float32', KV] } }, 'past_key_values.0.encoder.key', /encoder/);
  expectRefused({ inputs: { inputs_embeds: ['float32', [...IDS, 64]] } }, 'inputs_embeds', /activations/);
  expectRefused({ inputs: { temperature: ['float32', []] } }, 'temperature', /not known/);
  expectRefused({ inputs: { position_ids: ['int64', [3, ...IDS]] } }, 'position_ids', /rank 2/);
  expectRefused({ inputs: { input_ids: ['int32', IDS] } }, 'input_ids', /int64/);
  expectRefused({ inputs: { input_ids: ['int64', [4, 'n']] } }, 'input_ids', /one at a time/);
});

test('keys and values that pages cannot hold are refused', () => {
  const past = (type: Tensor.Type, shape: Shape) => ({
    inputs: { 'past_key_values.0.key': [type, shape] as [Tensor.Type, Shape] },
  });
  expectRefused(past('int8', KV), 'past_key_values.0.key', /float32 or float16/);
  expectRefused(past('float32', ['b', 3, 512, 64]), 'past_key_values.0.key', /fixed length/);
  expectRefused(past('float32', ['b', 'heads', 'past', 64]), 'past_key_values.0.key', /numbers for both/);
  expectRefused(past('float32', ['b', 3, 64]), 'past_key_values.0.key', /shape \[b, 3, 64\]/);
  expectRefused(past('float32', [8, 3, 'past', 64]), 'past_key_values.0.key', /one at a time/);
});

test('a model without its cache, or with half of it, is refused', () => {
  expectRefused({ without: ['input_ids'] }, 'input_ids', /missing/);
  const all = [0, 1].flatMap((i) => ['key', 'value'].map((role) => `past_key_values.${i}.${role}`));
  expectRefused({ without: all }, 'past_key_values.0.key', /export the model with its cache/);
  expectRefused({ without: ['past_key_values.1.value'] }, 'past_key_values.1.value', /missing/);
  expectRefused({ without: ['present.1.value'] }, 'present.1.value', /missing among the outputs/);
  expectRefused({ outputs: { 'present.0.key': ['float16', KV] } }, 'present.0.key', /float16/);
  expectRefused({ without: ['logits'] }, 'logits', /missing/);
  expectRefused({ outputs: { logits: ['float32', ['b', 1000]] } }, 'logits', /vocabulary/);
  expectRefused({ outputs: { logits: ['int64', [...IDS, 1000]] } }, 'logits', /int64/);
});

test('a runtime that tells no shapes is refused with the way out', () => {
  const old = { inputNames: ['input_ids'] } as unknown as Parameters<typeof readDecoderModel>[0];
  expect(() => readDecoderModel(old)).toThrow(/install a newer one/);
});
