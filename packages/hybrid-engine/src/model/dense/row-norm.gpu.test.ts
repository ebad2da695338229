import { ComputeContext } from '@bufferwise/gpu-kernels';
import { readF32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, test } from 'vitest';
import { largestError, RandomValues, spreadRows } from '../testing/random-values.ts';
import { rowNormReference } from './row-norm.reference.ts';
import { type RowNormOperands, recordRowNorm } from './row-norm.ts';

const EPS = 1e-5;
const TOLERANCE = 1e-4;

const device = await requestTestDevice();
const context = ComputeContext.of(device);

const place = (values: RandomValues, rowSize: number) => ({
  offsetWords: 4 * values.integer(0, 3),
  strideWords: rowSize + 4 * values.integer(0, 3),
});

describe('a norm of rows', () => {
  test.each(['plain', 'gated', 'added'] as const)(
    'gives what the reference gives, %s, for runs of any size, and touches nothing beside',
    async (mode) => {
      const values = new RandomValues(8);
      for (const runSize of [4, 16, 28, 252, 256, 260, 1028]) {
        const numTokens = values.integer(1, 40);
        const numRuns = runSize > 256 ? 1 : values.integer(1, 4);
        const sharesWeight = values.pick([false, true]);
        const rowSize = numRuns * runSize;
        const rows = values.f32(numTokens * rowSize);
        const weight = values.f32(sharesWeight ? runSize : rowSize);
        // Gates of any size: SiLU must not overflow.
        const other = values.f32(numTokens * rowSize).map((value) => value * values.pick([1, 10, 100, 10_000]));
        const [valuesPlace, otherPlace] = [place(values, rowSize), place(values, rowSize)];
        const buffer = storageBuffer(device, spreadRows(rows, numTokens, valuesPlace));
        const otherRows = { buffer: storageBuffer(device, spreadRows(other, numTokens, otherPlace)), ...otherPlace };
        const step = context.step('row norm');
        recordRowNorm(step, {
          numTokens,
          runSize,
          numRuns,
          values: { buffer, ...valuesPlace },
          weight: storageBuffer(device, weight),
          sharesWeight,
          eps: EPS,
          ...(mode === 'gated' && { gate: otherRows }),
          ...(mode === 'added' && { added: { rows: otherRows, scale: 0.25 } }),
        });
        expect(step.submit().numDispatches).toBe(1);
        const expected = rowNormReference({
          values: rows,
          runSize,
          weight,
          eps: EPS,
          gate: mode === 'gated' ? other : undefined,
          added: mode === 'added' ? { rows: other, scale: 0.25 } : undefined,
        });
        expect(largestError(await readF32(device, buffer), spreadRows(expected, numTokens, valuesPlace))).toBeLessThan(TOLERANCE);
      }
    },
  );

  test('is refused when an operand is shorter than claimed or lies at an odd place', () => {
    const [values, gate, weight] = [64, 64, 16].map((bytes) => storageBuffer(device, bytes));
    const sound: RowNormOperands = {
      numTokens: 2,
      runSize: 4,
      values: { buffer: values },
      gate: { buffer: gate },
      weight,
      eps: EPS,
    };
    const step = context.step('refused');
    recordRowNorm(step, sound);
    recordRowNorm(step, { ...sound, numRuns: 2, sharesWeight: true });
    for (const changes of [
      { numTokens: 5 },
      { numTokens: 0.5 },
      { runSize: 8 },
      { runSize: 3 },
      { numRuns: 0 },
      { numRuns: 2 },
      { numRuns: 3, sharesWeight: true },
      { gate: { buffer: gate, strideWords: 6 } },
      { values: { buffer: values, offsetWords: 12 } },
      { gate: { buffer: values } },
      { added: { rows: { buffer: gate }, scale: 1 } },
    ]) {
      expect(() => recordRowNorm(step, { ...sound, ...changes })).toThrow(expect.objectContaining({ code: 'kernel-dispatch' }));
    }
    expect(step.submit().numDispatches).toBe(2);
  });
});
