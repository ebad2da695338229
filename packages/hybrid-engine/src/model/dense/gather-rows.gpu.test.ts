import { ComputeContext } from '@bufferwise/gpu-kernels';
import { readF32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, test } from 'vitest';
import { RandomValues } from '../testing/random-values.ts';
import { recordGatherRows } from './gather-rows.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);

describe('gathering rows', () => {
  test('copies the chosen rows exactly, in the order chosen', async () => {
    const values = new RandomValues(5);
    for (const numRows of [1, 2, 17, 70]) {
      const rowSize = values.pick([4, 28, 128, 260]);
      const height = values.integer(1, 50);
      const source = values.f32(height * rowSize);
      const rows = Uint32Array.from({ length: numRows }, () => values.integer(0, height - 1));
      const output = storageBuffer(device, numRows * rowSize * 4);
      const step = context.step('gather');
      recordGatherRows(step, { numRows, rowSize, rows: step.upload(rows), source: storageBuffer(device, source), output });
      expect(step.submit().numDispatches).toBe(1);
      const expected = new Float32Array(numRows * rowSize);
      rows.forEach((row, r) => {
        expected.set(source.subarray(row * rowSize, (row + 1) * rowSize), r * rowSize);
      });
      expect(await readF32(device, output)).toEqual(expected);
    }
  });

  test('is refused when rows or output are shorter than claimed', () => {
    const step = context.step('refused');
    const sound = {
      numRows: 2,
      rowSize: 4,
      rows: step.upload(new Uint32Array(2)),
      source: storageBuffer(device, 64),
      output: storageBuffer(device, 32),
    };
    recordGatherRows(step, sound);
    for (const changes of [{ numRows: 3 }, { rowSize: 8 }, { rowSize: 3 }, { numRows: -1 }]) {
      expect(() => recordGatherRows(step, { ...sound, ...changes })).toThrow(
        expect.objectContaining({ code: 'kernel-dispatch' }),
      );
    }
    expect(step.submit().numDispatches).toBe(1);
  });
});
