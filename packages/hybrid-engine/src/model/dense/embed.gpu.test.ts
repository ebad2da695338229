import { ComputeContext } from '@bufferwise/gpu-kernels';
import { readF32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, test } from 'vitest';
import { dequantise } from '../../gguf/dequantise.ts';
import { halfTensor, RandomValues, singleTensor } from '../testing/random-values.ts';
import { recordEmbed } from './embed.ts';
import { type GpuMatrix, packMatrix } from './matrix.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);

describe('embedding tokens', () => {
  test.each(['f16', 'f32'] as const)('gives the rows of the file exactly, of %s', async (format) => {
    const values = new RandomValues(6);
    for (const numTokens of [1, 2, 17, 70]) {
      const width = values.pick([4, 28, 128, 260]);
      const vocabSize = values.integer(1, 50);
      const shape = [vocabSize, width];
      const tensor =
        format === 'f16'
          ? halfTensor('embed', values.f16(vocabSize * width), shape)
          : singleTensor('embed', values.f32(vocabSize * width), shape);
      const { data, ...layout } = packMatrix([tensor]);
      const tokens = Uint32Array.from({ length: numTokens }, () => values.integer(0, vocabSize - 1));
      const output = storageBuffer(device, numTokens * width * 4);
      const step = context.step('embed');
      recordEmbed(step, {
        numTokens,
        tokens: step.upload(tokens),
        embedding: { ...layout, buffer: storageBuffer(device, data) },
        output,
      });
      expect(step.submit().numDispatches).toBe(1);
      const rows = dequantise(tensor);
      const expected = new Float32Array(numTokens * width);
      tokens.forEach((token, t) => {
        expected.set(rows.subarray(token * width, (token + 1) * width), t * width);
      });
      expect(await readF32(device, output)).toEqual(expected);
    }
  });

  test('takes a scale to every value', async () => {
    const values = new RandomValues(7);
    const tensor = singleTensor('embed', values.f32(5 * 8), [5, 8]);
    const { data, ...layout } = packMatrix([tensor]);
    const output = storageBuffer(device, 2 * 8 * 4);
    const step = context.step('embed');
    const embedding = { ...layout, buffer: storageBuffer(device, data) };
    recordEmbed(step, { numTokens: 2, tokens: step.upload(Uint32Array.of(4, 1)), embedding, scale: 8, output });
    step.submit();
    const rows = dequantise(tensor).map((value) => value * 8);
    expect(await readF32(device, output)).toEqual(Float32Array.of(...rows.subarray(32, 40), ...rows.subarray(8, 16)));
  });

  test('is refused when tokens, embedding or output are shorter than claimed', () => {
    const step = context.step('refused');
    const embedding: GpuMatrix = { buffer: storageBuffer(device, 64), format: 'f32', inSize: 4, numColumns: 4, order: 'plain' };
    const sound = { numTokens: 2, tokens: step.upload(new Uint32Array(2)), embedding, output: storageBuffer(device, 32) };
    recordEmbed(step, sound);
    for (const changes of [
      { numTokens: 3 },
      { numTokens: -1 },
      { embedding: { ...embedding, numColumns: 5 } },
      { embedding: { ...embedding, inSize: 3 } },
    ]) {
      expect(() => recordEmbed(step, { ...sound, ...changes })).toThrow(expect.objectContaining({ code: 'kernel-dispatch' }));
    }
    expect(step.submit().numDispatches).toBe(1);
  });
});
