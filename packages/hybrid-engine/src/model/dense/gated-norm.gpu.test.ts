import { ComputeContext } from '@bufferwise/gpu-kernels';
import { readF32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, test } from 'vitest';
import { largestError, RandomValues, spreadRows } from '../testing/random-values.ts';
import { gatedNormReference } from './gated-norm.reference.ts';
import { recordGatedNorm } from './gated-norm.ts';

const EPS = 1e-5;

const device = await requestTestDevice();
const context = ComputeContext.of(device);

describe('a gated norm', () => {
  test('gives what the reference gives, in place, for gates of any size, and touches nothing beside', async () => {
    const values = new RandomValues(8);
    for (const rowSize of [4, 28, 252, 256, 260, 1028]) {
      const numTokens = values.integer(1, 40);
      const [rows, weight] = [values.f32(numTokens * rowSize), values.f32(rowSize)];
      const gate = values.f32(numTokens * rowSize).map((value) => value * values.pick([1, 10, 100, 10_000]));
      const place = { offsetWords: 4 * values.integer(0, 3), strideWords: rowSize + 4 * values.integer(0, 3) };
      const gatePlace = { offsetWords: 4 * values.integer(0, 3), strideWords: rowSize + 4 * values.integer(0, 3) };
      const buffer = storageBuffer(device, spreadRows(rows, numTokens, place));
      const step = context.step('gated norm');
      recordGatedNorm(step, {
        numTokens,
        rowSize,
        values: { buffer, ...place },
        gate: { buffer: storageBuffer(device, spreadRows(gate, numTokens, gatePlace)), ...gatePlace },
        weight: storageBuffer(device, weight),
        eps: EPS,
      });
      expect(step.submit().numDispatches).toBe(1);
      const expected = spreadRows(gatedNormReference(rows, gate, weight, EPS), numTokens, place);
      expect(largestError(await readF32(device, buffer), expected)).toBeLessThan(1e-4);
    }
  });

  test('is refused when an operand is shorter than claimed or lies at an odd place', () => {
    const [values, gate, weight] = [64, 64, 16].map((bytes) => storageBuffer(device, bytes));
    const sound = { numTokens: 2, rowSize: 4, values: { buffer: values }, gate: { buffer: gate }, weight, eps: EPS };
    const step = context.step('refused');
    recordGatedNorm(step, sound);
    for (const changes of [
      { numTokens: 5 },
      { numTokens: 0.5 },
      { rowSize: 8 },
      { rowSize: 3 },
      { gate: { buffer: gate, strideWords: 6 } },
      { values: { buffer: values, offsetWords: 12 } },
      { gate: { buffer: values } },
    ]) {
      expect(() => recordGatedNorm(step, { ...sound, ...changes })).toThrow(expect.objectContaining({ code: 'kernel-dispatch' }));
    }
    expect(step.submit().numDispatches).toBe(1);
  });
});
