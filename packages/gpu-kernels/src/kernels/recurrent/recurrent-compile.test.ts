import { openGpu } from '@bufferwise-internal/webgpu-node';
import { afterAll, describe, expect, test } from 'vitest';
import { ComputeContext } from '../../kernel/compute-context.ts';
import { gatedDeltaFamily } from '../gated-delta/gated-delta.ts';
import { mamba2Family } from '../mamba2/ssm.ts';
import { MAX_WORKGROUP_STORAGE, shapeConstants } from './recurrence.ts';
import { replayConstants, replayKernel } from './replay.ts';
import { scanConstants, scanKernel } from './scan.ts';
import { stepKernel } from './step.ts';
import type { RecurrentVariant } from './variant.ts';

/** Dawn's backend that computes nothing, and has features that a software device lacks: f16 above all. */
const adapter = await openGpu({ dawnOptions: ['backend=null'] });
const device = await adapter.requestDevice({ label: 'null device', requiredFeatures: ['shader-f16', 'subgroups'] });
const context = ComputeContext.of(device);
afterAll(() => device.destroy());

const families = [mamba2Family, gatedDeltaFamily(true), gatedDeltaFamily(false)];
const variants = (['f32', 'f16', 'halves'] as const).flatMap((stored) =>
  [false, true].map((subgroups): RecurrentVariant => ({ stored, subgroups })),
);
const shape = { numHeads: 4, headDim: 64, stateSize: 64, numGroups: 2 };
const ring = { rows: 16, maxTokens: 4 };

describe.each(variants)('stored as $stored, subgroups $subgroups', (variant) => {
  test.each(families)('the kernels of $label compile on a device that has every feature', async (family) => {
    await expect(context.warmUp(scanKernel(family, variant), scanConstants(shape, variant))).resolves.toBeUndefined();
    await expect(context.warmUp(stepKernel(family, variant), shapeConstants(shape))).resolves.toBeUndefined();
    for (const ringDtype of ['f32', 'f16'] as const) {
      const kernel = replayKernel(family, { ...variant, ringDtype });
      await expect(context.warmUp(kernel, replayConstants(family, shape, ring))).resolves.toBeUndefined();
    }
  });

  test('the scan stays within default limits for every size of head', () => {
    const kernel = scanKernel(mamba2Family, variant);
    for (let stateSize = 1; stateSize <= 1024; stateSize++) {
      for (const headDim of [1, 4, 31, 64, 256]) {
        const constants = scanConstants({ numHeads: 2, headDim, stateSize, numGroups: 1 }, variant);
        expect(constants.CHUNK).toBeGreaterThanOrEqual(1);
        expect(constants.ROW_GROUPS).toBeGreaterThanOrEqual(1);
        expect(kernel.workgroupSize(constants)[0]).toBeLessThanOrEqual(64);
        expect(kernel.workgroupStorageBytes?.(constants)).toBeLessThanOrEqual(MAX_WORKGROUP_STORAGE);
      }
    }
  });

  test.each(families)('a replay of $label stays within them for usual sizes', (family) => {
    const kernel = replayKernel(family, { ...variant, ringDtype: 'f32' });
    for (const stateSize of [1, 16, 64, 128, 256]) {
      const constants = replayConstants(family, { ...shape, stateSize }, { rows: 32, maxTokens: 8 });
      expect(kernel.workgroupStorageBytes?.(constants)).toBeLessThanOrEqual(MAX_WORKGROUP_STORAGE);
    }
  });
});
