import { ComputeContext } from '@bufferwise/gpu-kernels';
import { readF32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, test } from 'vitest';
import { dequantise } from '../gguf/dequantise.ts';
import { recordMatmul } from './dense/matmul.ts';
import { GpuWeights } from './gpu-weights.ts';
import { readModel } from './model.ts';
import { present } from './testing/present.ts';
import { largestError, RandomValues } from './testing/random-values.ts';
import { whalerFiles } from './testing/whaler-files.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);
const model = readModel(whalerFiles());

describe('the weights of the demo model', () => {
  test('take the bytes of their 16-bit matrices and 32-bit vectors, and give them back', async () => {
    const weights = await GpuWeights.upload(device, model);
    const bytes = [...model.tensors.values()].reduce((sum, { name, shape, numElements }) => {
      return sum + numElements * (shape.length === 2 && !/ssm_(conv1d|a|d|norm)/.test(name) ? 2 : 4);
    }, 0);
    expect(weights.bytes).toBe(bytes);
    expect(weights.layers.map(({ mixer }) => mixer.kind)).toEqual(model.description.layers.map(({ mixer }) => mixer.kind));
    expect(weights.output).toBe(weights.embedding);
    weights.destroy();
  });

  test('compute a whole feed-forward layer in two dispatches, as plain arithmetic does', async () => {
    const weights = await GpuWeights.upload(device, model);
    const { dModel, mlpHidden, normEps: eps } = model.config;
    const tensor = (name: string) => dequantise(present(model.tensors.get(`blk.1.${name}.weight`)));
    for (const numTokens of [1, 9]) {
      const x = new RandomValues(numTokens).f32(numTokens * dModel);
      const hidden = storageBuffer(device, x);
      const expanded = storageBuffer(device, numTokens * mlpHidden * 4);
      const { normBefore, gateUp, down } = present(weights.layers[1].feedForward);
      const step = context.step('feed forward');
      const expandedRows = { buffer: expanded };
      recordMatmul(step, {
        numTokens,
        input: { buffer: hidden },
        norm: { weight: present(normBefore), eps },
        ...gateUp,
        output: expandedRows,
        epilogue: 'swiglu',
      });
      recordMatmul(step, { numTokens, input: expandedRows, ...down, output: { buffer: hidden }, epilogue: 'add' });
      expect(step.submit().numDispatches).toBe(2);
      const expected = feedForward(x, numTokens, tensor, eps);
      expect(largestError(await readF32(device, hidden), expected)).toBeLessThan(1e-4);
    }
    weights.destroy();
  });
});

/** x + down(silu(gate(norm(x))) * up(norm(x))), row by row. */
function feedForward(x: Float32Array, numTokens: number, tensor: (name: string) => Float32Array, eps: number): Float32Array {
  const [norm, gate, up, down] = ['ffn_norm', 'ffn_gate', 'ffn_up', 'ffn_down'].map(tensor);
  const width = norm.length;
  const result = x.slice();
  for (let t = 0; t < numTokens; t++) {
    const row = x.subarray(t * width, (t + 1) * width);
    const meanSquare = row.reduce((sum, value) => sum + value * value, 0) / width;
    const normed = row.map((value, i) => (value / Math.sqrt(meanSquare + eps)) * norm[i]);
    const times = (weight: Float32Array, values: Float32Array, o: number) =>
      values.reduce((sum, value, i) => sum + value * weight[o * values.length + i], 0);
    const hidden = Float32Array.from({ length: gate.length / width }, (_, o) => {
      const side = times(gate, normed, o);
      return (side / (1 + Math.exp(-side))) * times(up, normed, o);
    });
    for (let o = 0; o < width; o++) result[t * width + o] += times(down, hidden, o);
  }
  return result;
}
