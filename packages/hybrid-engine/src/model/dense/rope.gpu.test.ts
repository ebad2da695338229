import { ComputeContext } from '@bufferwise/gpu-kernels';
import { readF32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, test } from 'vitest';
import { largestError, RandomValues } from '../testing/random-values.ts';
import { ropeReference } from './rope.reference.ts';
import { recordRope, uploadRotations } from './rope.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);

describe('rotary positions', () => {
  test('turn every head as the reference does, and nothing beside them', async () => {
    const values = new RandomValues(3);
    for (const numTokens of [1, 2, 33, 65]) {
      const numHeads = values.integer(1, 6);
      const headDim = values.pick([4, 32, 64, 100]);
      const offsetWords = values.integer(0, 9);
      const rowSize = numHeads * headDim;
      const strideWords = rowSize + values.integer(0, 40);
      const positions = Uint32Array.from({ length: numTokens }, () => values.integer(0, 100_000));
      const words = values.f32(offsetWords + numTokens * strideWords);
      const heads = storageBuffer(device, words);
      const step = context.step('rope');
      const rotations = uploadRotations(step, positions, { headDim, ropeTheta: 10_000 });
      recordRope(step, { numTokens, numHeads, headDim, rotations, heads: { buffer: heads, offsetWords, strideWords } });
      expect(step.submit().numDispatches).toBe(1);

      const expected = words.slice();
      for (let t = 0; t < numTokens; t++) {
        const row = expected.subarray(offsetWords + t * strideWords).subarray(0, rowSize);
        row.set(ropeReference(row, [positions[t]], { headDim, ropeTheta: 10_000 }));
      }
      expect(largestError(await readF32(device, heads), expected)).toBeLessThan(1e-6);
    }
  });

  test('leave the first position as it is', async () => {
    const words = new RandomValues(4).f32(64);
    const heads = storageBuffer(device, words);
    const step = context.step('rope');
    const rotations = uploadRotations(step, [0], { headDim: 32, ropeTheta: 10_000 });
    recordRope(step, { numTokens: 1, numHeads: 2, headDim: 32, rotations, heads: { buffer: heads } });
    step.submit();
    expect(await readF32(device, heads)).toEqual(words);
  });

  test('are refused for odd heads, and for more tokens than have rotations or heads', () => {
    const step = context.step('refused');
    const rotations = uploadRotations(step, [0, 1], { headDim: 4, ropeTheta: 10_000 });
    const sound = { numTokens: 2, numHeads: 1, headDim: 4, rotations, heads: { buffer: storageBuffer(device, 64) } };
    recordRope(step, sound);
    for (const changes of [{ headDim: 3 }, { numTokens: 3 }, { numTokens: 1, numHeads: 5 }, { numHeads: -1 }]) {
      expect(() => recordRope(step, { ...sound, ...changes })).toThrow(expect.objectContaining({ code: 'kernel-dispatch' }));
    }
    expect(step.submit().numDispatches).toBe(1);
  });
});
