import { ComputeContext } from '@bufferwise/gpu-kernels';
import { readF32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, test } from 'vitest';
import type { RotaryDescription } from '../../description/rotary.ts';
import { turn } from '../../reference/rotary.ts';
import { largestError, RandomValues } from '../testing/random-values.ts';
import { recordRope, uploadRotations } from './rope.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);

function rotaryOf(dimensions: number, changes: Partial<RotaryDescription> = {}): RotaryDescription {
  return { pairs: 'halves', base: 10_000, dimensions, positionScale: 1, hasFactors: false, ...changes };
}

describe('rotary positions', () => {
  test.each(['halves', 'interleaved'] as const)(
    'turn every head as the reference does, in %s, and nothing beside them',
    async (pairs) => {
      const values = new RandomValues(3);
      for (const numTokens of [1, 2, 33, 65]) {
        const numHeads = values.integer(1, 6);
        const headDim = values.pick([4, 32, 64, 100]);
        const hasFactors = values.pick([false, true]);
        const rotary = rotaryOf(values.pick([headDim, headDim / 2]), { pairs, hasFactors, positionScale: values.pick([1, 8]) });
        const factors = hasFactors ? values.f32(rotary.dimensions / 2).map((value) => 2 + value) : undefined;
        const offsetWords = values.integer(0, 9);
        const rowSize = numHeads * headDim;
        const strideWords = rowSize + values.integer(0, 40);
        const positions = Uint32Array.from({ length: numTokens }, () => values.integer(0, 100_000));
        const words = values.f32(offsetWords + numTokens * strideWords);
        const heads = storageBuffer(device, words);
        const step = context.step('rope');
        const rotations = uploadRotations(step, positions, rotary, factors);
        recordRope(step, { numTokens, numHeads, headDim, rotary, rotations, heads: { buffer: heads, offsetWords, strideWords } });
        expect(step.submit().numDispatches).toBe(1);

        const expected = words.slice();
        for (let t = 0; t < numTokens; t++) {
          const row = expected.subarray(offsetWords + t * strideWords).subarray(0, rowSize);
          turn(row, headDim, positions[t], rotary, factors);
        }
        expect(largestError(await readF32(device, heads), expected)).toBeLessThan(1e-6);
      }
    },
  );

  test('leave the first position as it is', async () => {
    const words = new RandomValues(4).f32(64);
    const heads = storageBuffer(device, words);
    const step = context.step('rope');
    const rotary = rotaryOf(32);
    const rotations = uploadRotations(step, [0], rotary);
    recordRope(step, { numTokens: 1, numHeads: 2, headDim: 32, rotary, rotations, heads: { buffer: heads } });
    step.submit();
    expect(await readF32(device, heads)).toEqual(words);
  });

  test('are refused for odd pairs, for more than a head has, and for more tokens than have rotations or heads', () => {
    const step = context.step('refused');
    const rotary = rotaryOf(4);
    const rotations = uploadRotations(step, [0, 1], rotary);
    const sound = { numTokens: 2, numHeads: 1, headDim: 4, rotary, rotations, heads: { buffer: storageBuffer(device, 64) } };
    recordRope(step, sound);
    for (const changes of [
      { rotary: rotaryOf(3) },
      { headDim: 2 },
      { numTokens: 3 },
      { numTokens: 1, numHeads: 5 },
      { numHeads: -1 },
    ]) {
      expect(() => recordRope(step, { ...sound, ...changes })).toThrow(expect.objectContaining({ code: 'kernel-dispatch' }));
    }
    expect(step.submit().numDispatches).toBe(1);
  });
});
