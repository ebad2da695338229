import { ComputeContext } from '@bufferwise/gpu-kernels';
import { readF32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, test } from 'vitest';
import { toFloat32 } from '../safetensors.ts';
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
      const rows = toFloat32(tensor);
      const expected = new Float32Array(numTokens * width);
      tokens.forEach((token, t) => {
        expected.set(rows.subarray(token * width, (token + 1) * width), t * width);
      });
      expect(await readF32(device, output)).toEqual(expected);
    }
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
