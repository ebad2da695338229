import { openGpu } from '@bufferwise-internal/webgpu-node';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ComputeContext } from '../../kernel/compute-context.ts';
import { type AttentionCase, decodeOf, layOut, type PageCase, prefillOf, relativeError } from './attention-rig.ts';
import { type AttentionShape, latentAttention } from './attention-shape.ts';
import { pagedAttentionReference } from './paged-attention.reference.ts';
import { PagedAttention, type PagedAttentionOptions } from './paged-attention.ts';

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
