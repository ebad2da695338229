import { openGpu } from '@bufferwise-internal/webgpu-node';
import { afterAll, expect, test } from 'vitest';
import { ComputeContext } from '../../kernel/compute-context.ts';
import { type AttentionShape, latentAttention } from './attention-shape.ts';
import { PagedAttention } from './paged-attention.ts';

/** Dawn's backend that computes nothing, and has features that a software device lacks: f16 above all. */
const adapter = await openGpu({ dawnOptions: ['backend=null'] });
const requiredFeatures = ['shader-f16', 'subgroups'] as const;
const device = await adapter.requestDevice({ label: 'null device', requiredFeatures });
const context = ComputeContext.of(device);
afterAll(() => device.destroy());

const SHAPES: readonly AttentionShape[] = [
  { numQueryHeads: 4, numKvHeads: 2, headDim: 64 },
  { numQueryHeads: 12, numKvHeads: 1, headDim: 256, softCap: 30, learnedSinks: true },
  { numQueryHeads: 2, numKvHeads: 2, headDim: 192, valueDim: 128, selectsBlocks: true },
  latentAttention({ numQueryHeads: 16, latentDim: 512, rotatedDim: 64, scale: 0.1 }),
];

test.each(['f32', 'f16', 'int8'] as const)('kernels of %s compile with and without f16 and subgroups', async (storage) => {
  for (const shape of SHAPES) {
    for (const features of [[], ['shader-f16'], ['subgroups'], [...requiredFeatures]] as const) {
      for (const tiling of ['gpu', 'software'] as const) {
        const attention = new PagedAttention(context, { ...shape, storage }, { tiling, features });
        await expect(attention.warmUp()).resolves.toBeUndefined();
      }
    }
  }
});
