import { openGpu, requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ComputeContext } from '../../kernel/compute-context.ts';
import type { KvPages, KvScales } from '../kv-pages/kv-pages.ts';
import {
  type AttentionCase,
  type DeviceOperands,
  decodeOf,
  layOut,
  type PageCase,
  prefillOf,
  relativeError,
  run,
  upload,
} from './attention-rig.ts';
import { type AttentionShape, latentAttention } from './attention-shape.ts';
import { pagedAttentionReference } from './paged-attention.reference.ts';
import { PagedAttention, type PagedAttentionOptions, type SelectedBlocks } from './paged-attention.ts';

/** Stored numbers are exact on both sides, so the tolerance of f32 holds for all of them. */
const TOLERANCE = 1e-4;

const OPTIONAL = ['subgroups', 'shader-f16'] as const;
const offered = (await openGpu()).features;
const requiredFeatures = OPTIONAL.filter((feature) => offered.has(feature));
const device = await requestTestDevice({ requiredFeatures });
const context = ComputeContext.of(device);

const latent = (sizes: { numQueryHeads: number; latentDim: number; rotatedDim: number }): AttentionShape =>
  latentAttention({ ...sizes, scale: 0.1 });

interface Variant {
  name: string;
  shape: AttentionShape;
  /** Cases of each kind. */
  numRuns?: number;
}

const VARIANTS: readonly Variant[] = [
  { name: 'heads of 8', shape: { numQueryHeads: 4, numKvHeads: 2, headDim: 8 } },
  { name: 'heads of 16', shape: { numQueryHeads: 10, numKvHeads: 2, headDim: 16 } },
  { name: 'heads of 16 in int8', shape: { numQueryHeads: 2, numKvHeads: 2, headDim: 16, storage: 'int8' } },
  { name: 'heads of 80', shape: { numQueryHeads: 4, numKvHeads: 2, headDim: 80 } },
  { name: 'heads of 96', shape: { numQueryHeads: 3, numKvHeads: 1, headDim: 96 } },
  { name: 'heads of 112', shape: { numQueryHeads: 2, numKvHeads: 2, headDim: 112 } },
  { name: 'keys of 192 and values of 128', shape: { numQueryHeads: 2, numKvHeads: 1, headDim: 192, valueDim: 128 } },
  { name: 'keys of 40 and values of 64', shape: { numQueryHeads: 2, numKvHeads: 2, headDim: 40, valueDim: 64 } },
  { name: 'learned sinks', shape: { numQueryHeads: 6, numKvHeads: 2, headDim: 64, learnedSinks: true } },
  { name: 'learned sinks, soft cap', shape: { numQueryHeads: 2, numKvHeads: 1, headDim: 32, learnedSinks: true, softCap: 5 } },
  { name: 'f16', shape: { numQueryHeads: 4, numKvHeads: 2, headDim: 64, storage: 'f16' } },
  { name: 'f16, wide heads', shape: { numQueryHeads: 2, numKvHeads: 1, headDim: 256, storage: 'f16' } },
  { name: 'int8', shape: { numQueryHeads: 4, numKvHeads: 2, headDim: 64, storage: 'int8' } },
  { name: 'int8, wide heads', shape: { numQueryHeads: 2, numKvHeads: 2, headDim: 128, storage: 'int8', softCap: 5 } },
  { name: 'a latent cache', shape: latent({ numQueryHeads: 5, latentDim: 64, rotatedDim: 32 }) },
  { name: 'a latent cache of f16', shape: { ...latent({ numQueryHeads: 3, latentDim: 96, rotatedDim: 16 }), storage: 'f16' } },
  { name: 'a latent cache of int8', shape: { ...latent({ numQueryHeads: 3, latentDim: 64, rotatedDim: 32 }), storage: 'int8' } },
  { name: 'a latent cache of full size', shape: latent({ numQueryHeads: 10, latentDim: 512, rotatedDim: 64 }), numRuns: 2 },
  { name: 'selected blocks', shape: { numQueryHeads: 4, numKvHeads: 2, headDim: 32, selectsBlocks: true } },
  {
    name: 'everything at once',
    shape: { numQueryHeads: 4, numKvHeads: 2, headDim: 128, storage: 'int8', selectsBlocks: true, learnedSinks: true },
  },
];

/** Both ways to cut the work, one with all features that the device has and one with none. */
const WAYS: readonly (PagedAttentionOptions & { name: string })[] = [
  { name: 'cut for gpu, with all features', tiling: 'gpu' },
  { name: 'cut for software, without features', tiling: 'software', features: [] },
];

const somePages = (shape: AttentionShape): fc.Arbitrary<PageCase> =>
  fc.record({
    tokensPerPage: fc.constantFrom(1, 3, 4, 8, 16),
    gapWords: fc.constantFrom(0, 4, 20),
    baseWords: fc.constantFrom(0, 8),
    rowGapWords: fc.constantFrom(0, 4),
    pagesPerScalePage: fc.constantFrom(1, 2, 5),
    headsPerScale: fc.constantFrom(1, shape.numKvHeads),
  });

const someSelection = fc.record({
  tokensPerBlock: fc.constantFrom(1, 4, 7, 16),
  maxBlocks: fc.constantFrom(1, 3, 10),
  perHead: fc.boolean(),
});

const someRequest = fc
  .record({
    contextLength: fc.integer({ min: 1, max: 70 }),
    part: fc.double({ min: 0, max: 1, noNaN: true }),
    seed: fc.nat({ max: 2 }),
  })
  .map(({ contextLength, part, seed }) => ({ contextLength, numQueries: Math.ceil(part * contextLength), seed }));

const someCase = (shape: AttentionShape): fc.Arbitrary<AttentionCase> =>
  fc
    .record({
      requests: fc.array(someRequest, { minLength: 1, maxLength: 3 }),
      keys: somePages(shape),
      values: somePages(shape),
      selection: shape.selectsBlocks ? someSelection : fc.constant(undefined),
      slidingWindowSize: fc.option(fc.integer({ min: 1, max: 40 }), { nil: undefined }),
      numSinkTokens: fc.constantFrom(0, 1, 4, 9),
      seed: fc.nat(),
      sharePages: shape.selectsBlocks ? fc.constant(false) : fc.boolean(),
    })
    .map((some) => ({ shape, ...some }));

const oneQueryEach = (attentionCase: AttentionCase): AttentionCase => ({
  ...attentionCase,
  requests: attentionCase.requests.map((request) => ({ ...request, numQueries: 1 })),
});

/** Requests with more keys than decode has in one partition. */
const severalPartitions = (shape: AttentionShape): AttentionCase => ({
  shape,
  requests: [129, 5, 300].map((contextLength, seed) => ({ contextLength, numQueries: 1, seed })),
  keys: { tokensPerPage: 32, pagesPerScalePage: 2 },
  values: { tokensPerPage: 16 },
  ...(shape.selectsBlocks ? { selection: { tokensPerBlock: 16, maxBlocks: 12, perHead: true } } : {}),
});

describe.each(VARIANTS)('$name', ({ shape, numRuns = 5 }) => {
  test.each(WAYS)('computes what the reference does, $name', async (way) => {
    const attention = new PagedAttention(context, shape, way);
    const errorOf = async (attentionCase: AttentionCase, work: typeof prefillOf) => {
      const found = await work(context, attention, attentionCase);
      return relativeError(found, pagedAttentionReference(shape, layOut(attentionCase)));
    };
    await fc.assert(
      fc.asyncProperty(someCase(shape), async (attentionCase) => {
        expect(await errorOf(attentionCase, prefillOf)).toBeLessThan(TOLERANCE);
        expect(await errorOf(oneQueryEach(attentionCase), decodeOf)).toBeLessThan(TOLERANCE);
      }),
      { numRuns },
    );
    expect(await errorOf(severalPartitions(shape), decodeOf)).toBeLessThan(TOLERANCE);
    attention.destroy();
  });
});

describe('refused, with the reason, before anything is added', () => {
  const request = { contextLength: 9, numQueries: 1, seed: 0 };
  const operandsOf = (shape: AttentionShape, more: Partial<AttentionCase> = {}) => {
    const attentionCase = { shape, requests: [request], keys: { tokensPerPage: 4 }, values: { tokensPerPage: 4 }, ...more };
    return upload(device, shape, layOut(attentionCase));
  };
  const base: AttentionShape = { numQueryHeads: 4, numKvHeads: 2, headDim: 32 };
  const plain = operandsOf(base);
  const int8 = operandsOf({ ...base, storage: 'int8' });
  const inKeys = operandsOf({ ...base, valuesInKeys: true });
  const selection = { tokensPerBlock: 4, maxBlocks: 3, perHead: true };
  const selected = operandsOf({ ...base, selectsBlocks: true }, { selection });
  const scales = int8.keys.scales as KvScales;
  const list = selected.selectedBlocks as SelectedBlocks;

  test.each<[string, string, AttentionShape, DeviceOperands]>([
    ['values have no pages', 'kernel-layout', base, { ...plain, values: undefined }],
    ['they lie in the keys', 'kernel-layout', { ...base, valuesInKeys: true }, { ...inKeys, values: inKeys.keys }],
    ['keys.scales is given, but f32 has no scales', 'kernel-layout', base, { ...plain, keys: { ...plain.keys, scales } }],
    ['keys.scales is missing', 'kernel-layout', { ...base, storage: 'int8' }, plain],
    [
      'a page of keys.scales is for 6 tokens, which are no whole pages of 4',
      'kernel-layout',
      { ...base, storage: 'int8' },
      { ...int8, keys: { ...int8.keys, scales: { ...scales, tokensPerPage: 6 } } },
    ],
    [
      'keys.scales.headsPerScale 3 does not divide the 2',
      'kernel-layout',
      { ...base, storage: 'int8' },
      { ...int8, keys: { ...int8.keys, scales: { ...scales, headsPerScale: 3 } } },
    ],
    [
      'keys.scales.pageStrideWords is 1, but a page of scales of 4 tokens has 2 words',
      'kernel-layout',
      { ...base, storage: 'int8' },
      { ...int8, keys: { ...int8.keys, scales: { ...scales, pageStrideWords: 1 } } },
    ],
    [
      'keys.rowStrideWords is 60, but a row has 64 words',
      'kernel-layout',
      base,
      { ...plain, keys: { ...plain.keys, rowStrideWords: 60 } },
    ],
    [
      'keys.baseWords is 3, but the kernels read four numbers at a time. Lay rows and pages out in multiples of 2',
      'kernel-layout',
      { ...base, storage: 'f16' },
      { ...plain, keys: { ...plain.keys, rowStrideWords: 32, baseWords: 3 } },
    ],
    [
      'sinkScores has 0 scores, but there must be one for each of the 4',
      'kernel-dispatch',
      { ...base, learnedSinks: true },
      plain,
    ],
    ['sinkScores has 4 scores, but there must be none', 'kernel-dispatch', base, { ...plain, sinkScores: [1, 2, 3, 4] }],
    ['selectedBlocks is missing', 'kernel-dispatch', { ...base, selectsBlocks: true }, plain],
    ['selectedBlocks is given', 'kernel-dispatch', base, selected],
    [
      'selectedBlocks.pageStrideWords is 5, but a list has 6 words',
      'kernel-layout',
      { ...base, selectsBlocks: true },
      { ...selected, selectedBlocks: { ...list, pageStrideWords: 5 } },
    ],
    [
      'selectedBlocks.pool reaches',
      'kernel-layout',
      { ...base, selectsBlocks: true },
      { ...selected, selectedBlocks: { ...list, baseWords: 1000 } },
    ],
  ])('%s', (message, code, shape, operands) => {
    const attention = new PagedAttention(context, shape);
    const step = context.step('refused');
    for (const work of ['prefill', 'decode'] as const) {
      expect(() => attention[work](step, operands)).toThrow(message);
      expect(() => attention[work](step, operands)).toThrow(expect.objectContaining({ code }));
    }
    expect(step.submit()).toMatchObject({ numDispatches: 0, numCopies: 0, uploadedBytes: 0 });
  });

  test.each<[string, Partial<AttentionShape>]>([
    ['headDim 644 is not a multiple of 4 from 8 to 640', { valuesInKeys: true, headDim: 644, valueDim: 512 }],
    ['valueDim 576 is not a multiple of 4 from 8 to 512', { valuesInKeys: true, headDim: 576 }],
    ['valueDim 64 is more than headDim 32', { valuesInKeys: true, valueDim: 64 }],
    ['valueDim 6 is not', { valueDim: 6 }],
    ['storage fp4 is none of f32, f16, int8', { storage: 'fp4' as never }],
  ])('%s', (message, change) => {
    expect(() => new PagedAttention(context, { ...base, ...change })).toThrow(message);
  });
});

test('tables that travel with the step cost no copy, and are read like others', async () => {
  const shape: AttentionShape = { numQueryHeads: 4, numKvHeads: 2, headDim: 32 };
  const laidOut = layOut({
    shape,
    requests: [{ contextLength: 20, numQueries: 1, seed: 0 }],
    keys: { tokensPerPage: 4 },
    values: { tokensPerPage: 8 },
  });
  const operands = upload(device, shape, laidOut);
  const attention = new PagedAttention(context, shape);
  const apart = await run(context, operands, (step) => attention.decode(step, operands));
  expect(apart.counts.numCopies).toBe(3);
  const together = await run(context, operands, (step) => {
    const table = (pages: KvPages, from: ArrayLike<number>) => ({ ...pages, table: step.upload(Int32Array.from(from)) });
    attention.decode(step, {
      ...operands,
      keys: table(operands.keys, laidOut.keys.table),
      values: table(operands.values as KvPages, laidOut.values?.table as ArrayLike<number>),
      contextLength: step.upload(Uint32Array.of(20)),
    });
  });
  expect(together.counts.numCopies).toBe(0);
  expect(together.output).toEqual(apart.output);
  attention.destroy();
});

/** Both are right by the tests above, where the device has the feature; here each is compared with the other. */
async function differenceBy(feature: GPUFeatureName, shape: AttentionShape): Promise<number> {
  const attentionCase: AttentionCase = {
    shape,
    requests: [{ contextLength: 60, numQueries: 20, seed: 1 }],
    keys: { tokensPerPage: 8 },
    values: { tokensPerPage: 8 },
  };
  const results: Float32Array[] = [];
  for (const features of [[], [feature]]) {
    const attention = new PagedAttention(context, shape, { tiling: 'gpu', features });
    results.push(await prefillOf(context, attention, attentionCase));
    attention.destroy();
  }
  return relativeError(results[0], results[1]);
}

test('subgroups change no more than the last bits', async ({ skip }) => {
  skip(!offered.has('subgroups'), 'the device has no subgroups: attention-compile.test.ts compiles these kernels');
  expect(await differenceBy('subgroups', { numQueryHeads: 8, numKvHeads: 2, headDim: 128 })).toBeLessThan(1e-6);
});

test('f16 that is read as such is what is unpacked without the feature', async ({ skip }) => {
  skip(!offered.has('shader-f16'), 'the device has no shader-f16: attention-compile.test.ts compiles these kernels');
  expect(await differenceBy('shader-f16', { numQueryHeads: 4, numKvHeads: 2, headDim: 64, storage: 'f16' })).toBe(0);
});
