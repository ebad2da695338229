import { ComputeContext } from '@bufferwise/gpu-kernels';
import { readF32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, test } from 'vitest';
import { halfTensor, largestError, RandomValues, singleTensor, spreadRows } from '../testing/random-values.ts';
import { matmulReference } from './matmul.reference.ts';
import { type MatmulOperands, recordMatmul } from './matmul.ts';
import { type GpuMatrix, type PackedMatrix, packBias, packMatrix } from './matrix.ts';

const TOLERANCE = 1e-4;
const EPS = 1e-5;

const device = await requestTestDevice();
const context = ComputeContext.of(device);

function uploaded({ data, ...layout }: PackedMatrix): GpuMatrix {
  return { ...layout, buffer: storageBuffer(device, data) };
}

interface Case {
  numTokens: number;
  inSize: number;
  outSize: number;
  format: 'f16' | 'f32';
  norm: boolean;
  epilogue: 'store' | 'add' | 'swiglu' | 'geglu';
  /** With a bias, and a scale other than 1. */
  biased?: boolean;
}

const isGated = (epilogue: Case['epilogue']) => epilogue === 'swiglu' || epilogue === 'geglu';

/** Largest error of one layer on random values, in a buffer in which rows lie apart. */
async function errorOf(values: RandomValues, wanted: Case): Promise<number> {
  const { numTokens, inSize, outSize, format, epilogue, biased = false } = wanted;
  const order = isGated(epilogue) ? 'gate-up' : 'plain';
  const parts = Array.from({ length: isGated(epilogue) ? 2 : 1 }, () =>
    format === 'f16' ? values.f16(outSize * inSize) : { values: values.f32(outSize * inSize) },
  );
  const tensors = parts.map((part) =>
    'bits' in part ? halfTensor('w', part, [outSize, inSize]) : singleTensor('w', part.values, [outSize, inSize]),
  );
  const input = values.f32(numTokens * inSize);
  const before = values.f32(numTokens * outSize);
  const norm = wanted.norm ? { weight: values.f32(inSize), eps: EPS } : undefined;
  const biases = parts.map(() => values.f32(outSize));
  const scale = biased ? 0.5 : undefined;
  const inputPlace = { offsetWords: 4 * values.integer(0, 3), strideWords: inSize + 4 * values.integer(0, 3) };
  const outputPlace = { offsetWords: values.integer(0, 5), strideWords: outSize + values.integer(0, 5) };
  const output = storageBuffer(device, spreadRows(before, numTokens, outputPlace));

  const step = context.step('matmul');
  recordMatmul(step, {
    numTokens,
    input: { buffer: storageBuffer(device, spreadRows(input, numTokens, inputPlace)), ...inputPlace },
    norm: norm && { ...norm, weight: storageBuffer(device, norm.weight) },
    weight: uploaded(packMatrix(tensors, order)),
    ...(biased && {
      bias: storageBuffer(
        device,
        packBias(
          biases.map((bias) => singleTensor('b', bias, [outSize])),
          order,
        ),
      ),
      scale,
    }),
    output: { buffer: output, ...outputPlace },
    epilogue,
  });
  expect(step.submit().numDispatches).toBe(1);

  const weight = Float32Array.from(parts.flatMap((part) => [...part.values]));
  const expected = matmulReference({
    numTokens,
    input,
    norm,
    weight,
    bias: biased ? Float32Array.from(biases.flatMap((bias) => [...bias])) : undefined,
    outSize,
    output: before,
    epilogue,
    scale,
  });
  return largestError(await readF32(device, output), spreadRows(expected, numTokens, outputPlace));
}

const VARIANTS = [false, true].flatMap((norm) =>
  (['store', 'add', 'swiglu', 'geglu'] as const).flatMap((epilogue) =>
    (['f16', 'f32'] as const).map((format) => ({ norm, epilogue, format })),
  ),
);

describe('a dense layer', () => {
  test.each(VARIANTS)('gives what the reference gives, with norm: $norm, $format weights, $epilogue', async (variant) => {
    const values = new RandomValues(VARIANTS.indexOf(variant));
    // On both sides of the borders between the kernels, of a workgroup's tokens and of its columns.
    for (const numTokens of [1, 2, 4, 5, 8, 9, 16, 17, 33]) {
      const inSize = values.pick([4, 28, 32, 36, 128, 256, 260]);
      const outSize = isGated(variant.epilogue)
        ? values.pick([4, 32, 36, 128, 132])
        : values.pick([1, 4, 7, 31, 32, 33, 127, 128, 129]);
      const wanted = { ...variant, numTokens, inSize, outSize, biased: values.pick([false, true]) };
      expect(await errorOf(values, wanted), JSON.stringify(wanted)).toBeLessThan(TOLERANCE);
    }
  });

  test.each<[string, Case]>([
    [
      'a prefill of the input projection',
      { numTokens: 150, inSize: 128, outSize: 552, format: 'f16', norm: true, epilogue: 'store' },
    ],
    ['one token of the logits', { numTokens: 1, inSize: 128, outSize: 1024, format: 'f16', norm: true, epilogue: 'store' }],
    ['a long row', { numTokens: 3, inSize: 4096, outSize: 40, format: 'f32', norm: false, epilogue: 'add' }],
    ['a long row for many tokens', { numTokens: 20, inSize: 4096, outSize: 40, format: 'f32', norm: true, epilogue: 'add' }],
  ])('is right for %s', async (_, wanted) => {
    expect(await errorOf(new RandomValues(1), wanted)).toBeLessThan(TOLERANCE);
  });

  test.each(['store', 'swiglu'] as const)(
    'gives a token the same bits whichever tokens come with it, on %s',
    async (epilogue) => {
      const values = new RandomValues(9);
      const [inSize, outSize] = [260, 36];
      const rows = values.f32(40 * inSize);
      const tensor = () => halfTensor('w', values.f16(outSize * inSize), [outSize, inSize]);
      const weight = uploaded(epilogue === 'swiglu' ? packMatrix([tensor(), tensor()], 'gate-up') : packMatrix([tensor()]));
      const norm = { weight: storageBuffer(device, values.f32(inSize)), eps: EPS };
      const run = async (first: number, numTokens: number): Promise<Float32Array> => {
        const output = storageBuffer(device, numTokens * outSize * 4);
        const input = { buffer: storageBuffer(device, rows.subarray(first * inSize, (first + numTokens) * inSize)) };
        const step = context.step('bits');
        recordMatmul(step, { numTokens, input, norm, weight, output: { buffer: output }, epilogue });
        step.submit();
        return readF32(device, output);
      };
      const together = await run(0, 40);
      for (const [first, numTokens] of [
        [0, 1],
        [39, 1],
        [7, 3],
        [11, 4],
        [20, 5],
        [3, 17],
      ]) {
        expect(await run(first, numTokens)).toEqual(together.subarray(first * outSize, (first + numTokens) * outSize));
      }
    },
  );

  test('adds no dispatch for no tokens', () => {
    const step = context.step('nothing');
    recordMatmul(step, { ...sound, numTokens: 0 });
    expect(step.submit().numDispatches).toBe(0);
  });
});

const words = storageBuffer(device, 64);
const weight: GpuMatrix = { buffer: words, format: 'f32', inSize: 4, numColumns: 4, order: 'plain' };
const sound: MatmulOperands = { numTokens: 2, input: { buffer: words }, weight, output: { buffer: storageBuffer(device, 64) } };

describe('a dense layer is refused', () => {
  test.each<[string, Partial<MatmulOperands>]>([
    ['with a fractional token count', { numTokens: 1.5 }],
    ['with inputs that four do not divide', { weight: { ...weight, inSize: 2 } }],
    ['with fewer weights than the matrix has', { weight: { ...weight, numColumns: 5 } }],
    ['with an input shorter than its rows', { numTokens: 5 }],
    ['with an input at an odd place', { input: { buffer: words, offsetWords: 2 } }],
    ['with a stride below the row', { output: { ...sound.output, strideWords: 3 } }],
    ['with an output shorter than its rows', { output: { ...sound.output, strideWords: 13 } }],
    ['with a bias shorter than its columns', { bias: storageBuffer(device, 12) }],
    ['with a norm of other size', { norm: { weight: { buffer: words, size: 12 }, eps: EPS } }],
    ['with columns in the order of swiglu', { weight: { ...weight, format: 'f16', numColumns: 8, order: 'gate-up' } }],
    ['with columns in plain order for swiglu', { epilogue: 'swiglu' }],
    ['with columns in plain order for geglu', { epilogue: 'geglu' }],
    ['that writes where it reads', { output: { buffer: words } }],
  ])('%s', (_, changes) => {
    const step = context.step('refused');
    recordMatmul(step, sound);
    expect(() => recordMatmul(step, { ...sound, ...changes })).toThrow(expect.objectContaining({ code: 'kernel-dispatch' }));
    expect(step.submit().numDispatches).toBe(1);
  });
});
