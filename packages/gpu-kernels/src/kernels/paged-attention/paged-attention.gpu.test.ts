import { requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { KernelError } from '../../errors/kernel-error.ts';
import { ComputeContext } from '../../kernel/compute-context.ts';
import type { ReferencePages } from '../kv-pages/kv-pages.reference.ts';
import type { KvPages } from '../kv-pages/kv-pages.ts';
import {
  type AttentionCase,
  type DeviceOperands,
  decodeOf,
  layOut,
  prefillOf,
  type RequestCase,
  relativeError,
  run,
  upload,
} from './attention-rig.ts';
import type { AttentionShape } from './attention-shape.ts';
import { pagedAttentionReference, type ReferenceOperands } from './paged-attention.reference.ts';
import { PagedAttention } from './paged-attention.ts';

const TOLERANCE = 1e-4;

const device = await requestTestDevice();
const context = ComputeContext.of(device);

const TILINGS = ['software', 'gpu'] as const;

/** Grouped, multi-head and multi-query; heads that fill their threads and heads that do not; more heads than a tile holds. */
const SHAPES: readonly AttentionShape[] = [
  { numQueryHeads: 4, numKvHeads: 2, headDim: 32 },
  { numQueryHeads: 3, numKvHeads: 3, headDim: 36, scale: 0.3 },
  { numQueryHeads: 10, numKvHeads: 1, headDim: 64 },
  { numQueryHeads: 3, numKvHeads: 1, headDim: 68, softCap: 5 },
  { numQueryHeads: 2, numKvHeads: 2, headDim: 128 },
  { numQueryHeads: 2, numKvHeads: 1, headDim: 256, softCap: 30 },
];

const nameOf = ({ numQueryHeads, numKvHeads, headDim, softCap }: AttentionShape) =>
  `${numQueryHeads} heads on ${numKvHeads} of ${headDim}${softCap ? `, soft cap ${softCap}` : ''}`;

const SMALL = SHAPES[0];
const attentions = new Map<string, PagedAttention>();

function attentionOf(shape: AttentionShape, tiling: 'gpu' | 'software' = 'software'): PagedAttention {
  const key = `${nameOf(shape)} ${tiling}`;
  const attention = attentions.get(key) ?? new PagedAttention(context, shape, { tiling });
  attentions.set(key, attention);
  return attention;
}

async function prefillError(attentionCase: AttentionCase, tiling?: 'gpu' | 'software'): Promise<number> {
  const found = await prefillOf(context, attentionOf(attentionCase.shape, tiling), attentionCase);
  return relativeError(found, pagedAttentionReference(attentionCase.shape, layOut(attentionCase)));
}

async function decodeError(attentionCase: AttentionCase, tiling?: 'gpu' | 'software'): Promise<number> {
  const found = await decodeOf(context, attentionOf(attentionCase.shape, tiling), attentionCase);
  return relativeError(found, pagedAttentionReference(attentionCase.shape, layOut(attentionCase)));
}

/** Of a shape whose values have pages. */
const layOutBoth = (attentionCase: AttentionCase) => layOut(attentionCase) as ReferenceOperands & { values: ReferencePages };

const somePages = fc.record({
  tokensPerPage: fc.constantFrom(1, 3, 4, 8, 16),
  gapWords: fc.constantFrom(0, 4, 20),
  baseWords: fc.constantFrom(0, 8),
});

const someRequest = (maxQueries: number): fc.Arbitrary<RequestCase> =>
  fc
    .record({
      contextLength: fc.integer({ min: 1, max: 70 }),
      part: fc.double({ min: 0, max: 1, noNaN: true }),
      seed: fc.nat({ max: 2 }),
    })
    .map(({ contextLength, part, seed }) => ({
      contextLength,
      numQueries: Math.min(maxQueries, Math.ceil(part * contextLength)),
      seed,
    }));

const someCase = (shape: AttentionShape, maxQueries: number): fc.Arbitrary<AttentionCase> =>
  fc
    .record({
      requests: fc.array(someRequest(maxQueries), { minLength: 1, maxLength: 4 }),
      keys: somePages,
      values: somePages,
      window: fc.option(fc.integer({ min: 1, max: 40 }), { nil: undefined }),
      numSinkTokens: fc.constantFrom(0, 1, 4, 9),
      seed: fc.nat(),
      sharePages: fc.boolean(),
    })
    .map(({ window, ...rest }) => ({ shape, slidingWindowSize: window, ...rest }));

test('kernels can be compiled ahead', async () => {
  await expect(attentionOf(SMALL).warmUp()).resolves.toBeUndefined();
}, 60_000);

describe.each(SHAPES)('attention of $numQueryHeads heads on $numKvHeads of $headDim', (shape) => {
  test.each(TILINGS)(
    'prefill computes what the reference does, cut for %s',
    async (tiling) => {
      await fc.assert(
        fc.asyncProperty(someCase(shape, 70), async (attentionCase) => {
          expect(await prefillError(attentionCase, tiling)).toBeLessThan(TOLERANCE);
        }),
        { numRuns: 8 },
      );
    },
    120_000,
  );

  test.each(TILINGS)(
    'decode computes what the reference does, cut for %s',
    async (tiling) => {
      await fc.assert(
        fc.asyncProperty(someCase(shape, 1), async (attentionCase) => {
          const requests = attentionCase.requests.map((request) => ({ ...request, numQueries: 1 }));
          expect(await decodeError({ ...attentionCase, requests }, tiling)).toBeLessThan(TOLERANCE);
        }),
        { numRuns: 8 },
      );
    },
    120_000,
  );
});

describe('lengths on both sides of each border', () => {
  const pages = { keys: { tokensPerPage: 8 }, values: { tokensPerPage: 4 } };
  const windowed = { slidingWindowSize: 20, numSinkTokens: 5 };

  test.each(TILINGS)(
    'prefill: pages, window, sinks and tiles of queries, cut for %s',
    async (tiling) => {
      const lengths = [1, 3, 4, 5, 7, 8, 9, 19, 20, 21, 24, 25, 26, 63, 64, 65];
      const requests = lengths.map((contextLength, seed) => ({ contextLength, numQueries: contextLength, seed }));
      expect(await prefillError({ shape: SMALL, requests, ...pages }, tiling)).toBeLessThan(TOLERANCE);
      expect(await prefillError({ shape: SMALL, requests, ...pages, ...windowed }, tiling)).toBeLessThan(TOLERANCE);
      const last = requests.map((request) => ({ ...request, numQueries: Math.min(3, request.contextLength) }));
      expect(await prefillError({ shape: SMALL, requests: last, ...pages, ...windowed }, tiling)).toBeLessThan(TOLERANCE);
    },
    60_000,
  );

  test.each(TILINGS)(
    'decode: pages, window, sinks and partitions, cut for %s',
    async (tiling) => {
      const lengths = [1, 7, 8, 9, 19, 20, 21, 24, 25, 26, 127, 128, 129, 255, 256, 257];
      const requests = lengths.map((contextLength, seed) => ({ contextLength, numQueries: 1, seed }));
      expect(await decodeError({ shape: SMALL, requests, ...pages }, tiling)).toBeLessThan(TOLERANCE);
      expect(await decodeError({ shape: SMALL, requests, ...pages, ...windowed }, tiling)).toBeLessThan(TOLERANCE);
      const wide = { slidingWindowSize: 126, numSinkTokens: 3 };
      expect(await decodeError({ shape: SMALL, requests, ...pages, ...wide }, tiling)).toBeLessThan(TOLERANCE);
    },
    60_000,
  );

  test('decode: more keys than there are partitions of 128', async () => {
    const shape = { numQueryHeads: 2, numKvHeads: 1, headDim: 32 };
    const requests = [8191, 8192, 8193, 16_500, 5].map((contextLength, seed) => ({ contextLength, numQueries: 1, seed }));
    expect(await decodeError({ shape, requests, keys: { tokensPerPage: 64 }, values: { tokensPerPage: 32 } })).toBeLessThan(
      TOLERANCE,
    );
  }, 60_000);

  test('requests without queries or without tokens leave the others as they are', async () => {
    const requests = [0, 9, 0, 5].map((numQueries, seed) => ({
      contextLength: numQueries === 0 ? seed * 3 : 12,
      numQueries,
      seed,
    }));
    expect(await prefillError({ shape: SMALL, requests, ...pages })).toBeLessThan(TOLERANCE);
    const operands = upload(device, SMALL, {
      ...layOut({ shape: SMALL, requests: [{ contextLength: 4, numQueries: 1, seed: 0 }], ...pages }),
      contextLength: [0],
    });
    const { output } = await run(context, operands, (step) => attentionOf(SMALL).decode(step, operands));
    expect(output).toEqual(new Float32Array(output.length));
  });
});

describe('a result is the same to the bit', () => {
  const some = { shape: SMALL, keys: { tokensPerPage: 8 }, values: { tokensPerPage: 16 } };
  const rowWords = SMALL.numQueryHeads * SMALL.headDim;

  test.each(TILINGS)('in whatever order requests are packed, cut for %s', async (tiling) => {
    const requests = [33, 5, 64, 17].map((contextLength, seed) => ({ contextLength, numQueries: contextLength - 3, seed }));
    for (const windowed of [{}, { slidingWindowSize: 11, numSinkTokens: 2 }]) {
      const attention = attentionOf(SMALL, tiling);
      const forth = await prefillOf(context, attention, { ...some, ...windowed, requests, seed: 1 });
      const back = await prefillOf(context, attention, { ...some, ...windowed, requests: [...requests].reverse(), seed: 2 });
      let at = 0;
      for (const { numQueries } of requests) {
        const row = forth.subarray(at * rowWords, (at + numQueries) * rowWords);
        at += numQueries;
        expect(back.subarray(back.length - at * rowWords, back.length - (at - numQueries) * rowWords)).toEqual(row);
      }
    }
  });

  test.each([SMALL, SHAPES[4]])('however the prompt of a $headDim wide head is cut into chunks', async (shape) => {
    for (const tiling of TILINGS) {
      for (const windowed of [{}, { slidingWindowSize: 11, numSinkTokens: 2 }]) {
        const attention = attentionOf(shape, tiling);
        const part = (from: number, to: number) => {
          const requests = [{ contextLength: to, numQueries: to - from, seed: 5 }];
          return prefillOf(context, attention, { ...some, shape, ...windowed, requests, seed: from });
        };
        const whole = await part(0, 50);
        const chunks = [await part(0, 1), await part(1, 23), await part(23, 24), await part(24, 50)];
        expect(Float32Array.from(chunks.flatMap((chunk) => [...chunk]))).toEqual(whole);
      }
    }
  });

  test('alone and in a batch with longer requests, in decode', async () => {
    const requests = [9, 700, 140, 128].map((contextLength, seed) => ({ contextLength, numQueries: 1, seed }));
    const attention = attentionOf(SMALL);
    const batch = await decodeOf(context, attention, { ...some, requests });
    for (let r = 0; r < requests.length; r++) {
      const alone = await decodeOf(context, attention, { ...some, requests: [requests[r]], seed: r });
      expect(alone).toEqual(batch.subarray(r * rowWords, (r + 1) * rowWords));
    }
  });

  test('when requests share pages', async () => {
    const requests = [40, 40, 25].map((contextLength) => ({ contextLength, numQueries: 4, seed: 3 }));
    const attention = attentionOf(SMALL);
    const apart = await prefillOf(context, attention, { ...some, requests });
    const shared = await prefillOf(context, attention, { ...some, requests, sharePages: true });
    expect(shared).toEqual(apart);
    expect(shared.subarray(0, 4 * rowWords)).toEqual(shared.subarray(4 * rowWords, 8 * rowWords));
  });
});

describe('memory that a query does not see', () => {
  const requests = [{ contextLength: 40, numQueries: 24, seed: 1 }];
  const some: AttentionCase = { shape: SMALL, requests, keys: { tokensPerPage: 8 }, values: { tokensPerPage: 4 } };

  test.each([SMALL, SHAPES[4]])(
    'never reaches it, be it a later token of its own request ($headDim wide heads)',
    async (shape) => {
      const operands = layOutBoth({ ...some, shape });
      const expected = pagedAttentionReference(shape, operands);
      const rowWords = shape.numKvHeads * shape.headDim;
      const poison = ({ pool, table, tokensPerPage, pageStrideWords }: typeof operands.keys, token: number) => {
        const word = table[Math.floor(token / tokensPerPage)] * pageStrideWords + (token % tokensPerPage) * rowWords;
        (pool as Float32Array).fill(Number.NaN, word, word + rowWords);
      };
      for (const pages of [operands.keys, operands.values]) for (const token of [30, 31, 39]) poison(pages, token);
      for (const tiling of TILINGS) {
        const uploaded = upload(device, shape, operands);
        const { output } = await run(context, uploaded, (step) => attentionOf(shape, tiling).prefill(step, uploaded));
        const untouched = 14 * shape.numQueryHeads * shape.headDim;
        expect(relativeError(output.subarray(0, untouched), expected.subarray(0, untouched))).toBeLessThan(TOLERANCE);
      }
    },
  );

  test('a request whose own numbers are broken leaves the others of the batch as they are', async () => {
    const attentionCase = { ...some, requests: [33, 21].map((contextLength, seed) => ({ contextLength, numQueries: 2, seed })) };
    const operands = layOutBoth(attentionCase);
    const expected = pagedAttentionReference(SMALL, operands);
    const queryWords = SMALL.numQueryHeads * SMALL.headDim;
    (operands.queries as Float32Array).fill(Number.NaN, 0, queryWords);
    for (const tiling of TILINGS) {
      const uploaded = upload(device, SMALL, operands);
      const { output } = await run(context, uploaded, (step) => attentionOf(SMALL, tiling).prefill(step, uploaded));
      expect(relativeError(output.subarray(queryWords), expected.subarray(queryWords))).toBeLessThan(TOLERANCE);
    }
  });

  test('a missing page among the visible ones counts as unseen, for keys and for values', async () => {
    for (const side of ['keys', 'values'] as const) {
      const operands = layOutBoth(some);
      (operands[side].table as Int32Array)[2] = -1;
      const expected = pagedAttentionReference(SMALL, operands);
      for (const tiling of TILINGS) {
        const uploaded = upload(device, SMALL, operands);
        const { output } = await run(context, uploaded, (step) => attentionOf(SMALL, tiling).prefill(step, uploaded));
        expect(relativeError(output, expected)).toBeLessThan(TOLERANCE);
      }
      const last = layOutBoth({ ...some, requests: [{ ...requests[0], numQueries: 1 }] });
      (last[side].table as Int32Array)[2] = -1;
      const uploaded = upload(device, SMALL, last);
      const { output } = await run(context, uploaded, (step) => attentionOf(SMALL).decode(step, uploaded));
      expect(relativeError(output, pagedAttentionReference(SMALL, last))).toBeLessThan(TOLERANCE);
    }
  });

  test('a query without any page gets zeros', async () => {
    const operands = layOutBoth(some);
    (operands.keys.table as Int32Array).fill(-1);
    const uploaded = upload(device, SMALL, operands);
    const { output } = await run(context, uploaded, (step) => attentionOf(SMALL).prefill(step, uploaded));
    expect(output).toEqual(new Float32Array(output.length));
  });

  test('a table that is too short for the context ends what is seen', async () => {
    const operands = layOutBoth(some);
    operands.keys.tableStride = 3;
    operands.keys.table = Int32Array.from({ length: 3 }, (_, i) => operands.keys.table[i]);
    const expected = pagedAttentionReference(SMALL, operands);
    const uploaded = upload(device, SMALL, operands);
    const { output } = await run(context, uploaded, (step) => attentionOf(SMALL).prefill(step, uploaded));
    expect(relativeError(output, expected)).toBeLessThan(TOLERANCE);
  });
});

describe('layouts', () => {
  const requests = [37, 20].map((contextLength, seed) => ({ contextLength, numQueries: 6, seed }));

  test('keys and values in one buffer, with pages of different sizes, distances and beginnings', async () => {
    const attentionCase: AttentionCase = {
      shape: SMALL,
      requests,
      keys: { tokensPerPage: 16, gapWords: 12, baseWords: 4 },
      values: { tokensPerPage: 3, gapWords: 4 },
    };
    const operands = upload(device, SMALL, layOut(attentionCase), { onePool: true });
    expect(operands.keys.pool).toBe(operands.values?.pool);
    const { output } = await run(context, operands, (step) => attentionOf(SMALL).prefill(step, operands));
    expect(relativeError(output, pagedAttentionReference(SMALL, layOut(attentionCase)))).toBeLessThan(TOLERANCE);
  });

  test('queries between keys and values of the same row', async () => {
    const operands = layOutBoth({ shape: SMALL, requests, keys: { tokensPerPage: 8 }, values: { tokensPerPage: 8 } });
    const rowWords = SMALL.numQueryHeads * SMALL.headDim;
    const strideWords = rowWords + 24;
    const rows = new Float32Array(8 + 12 * strideWords).fill(Number.NaN);
    for (let t = 0; t < 12; t++)
      rows.set((operands.queries as Float32Array).subarray(t * rowWords, (t + 1) * rowWords), 8 + t * strideWords);
    const uploaded = upload(device, SMALL, operands);
    const queries = storageBuffer(device, rows);
    const places = { queries, queriesBaseWords: 8, queriesStrideWords: strideWords };
    const { output } = await run(context, uploaded, (step) => attentionOf(SMALL).prefill(step, { ...uploaded, ...places }));
    expect(relativeError(output, pagedAttentionReference(SMALL, operands))).toBeLessThan(TOLERANCE);
  });

  test('scores far beyond what exp can hold', async () => {
    const attentionCase: AttentionCase = {
      shape: SMALL,
      requests,
      keys: { tokensPerPage: 8 },
      values: { tokensPerPage: 8 },
      keyScale: 3000,
    };
    for (const tiling of TILINGS) expect(await prefillError(attentionCase, tiling)).toBeLessThan(TOLERANCE);
    const single = requests.map((request) => ({ ...request, numQueries: 1 }));
    expect(await decodeError({ ...attentionCase, requests: single })).toBeLessThan(TOLERANCE);
    const capped = { ...attentionCase, shape: SHAPES[3] };
    for (const tiling of TILINGS) expect(await prefillError(capped, tiling)).toBeLessThan(TOLERANCE);
  });
});

describe('what a step costs', () => {
  const caseOf = (contextLength: number, numRequests: number): AttentionCase => ({
    shape: SMALL,
    requests: Array.from({ length: numRequests }, (_, seed) => ({ contextLength, numQueries: 1, seed })),
    keys: { tokensPerPage: 32 },
    values: { tokensPerPage: 32 },
  });

  test('one dispatch of prefill, however many requests; one of decode up to 128 visible keys, two beyond', async () => {
    const attention = attentionOf(SMALL);
    const dispatches = async (attentionCase: AttentionCase, kind: 'prefill' | 'decode') => {
      const operands = upload(device, SMALL, layOut(attentionCase));
      const { counts } = await run(context, operands, (step) => attention[kind](step, operands));
      return counts.numDispatches;
    };
    expect(await dispatches(caseOf(300, 1), 'prefill')).toBe(1);
    expect(await dispatches(caseOf(300, 9), 'prefill')).toBe(1);
    expect(await dispatches(caseOf(128, 9), 'decode')).toBe(1);
    expect(await dispatches(caseOf(129, 1), 'decode')).toBe(2);
    expect(await dispatches(caseOf(129, 9), 'decode')).toBe(2);
    expect(await dispatches({ ...caseOf(300, 2), slidingWindowSize: 124, numSinkTokens: 4 }, 'decode')).toBe(1);
    expect(await dispatches({ ...caseOf(300, 2), slidingWindowSize: 125, numSinkTokens: 4 }, 'decode')).toBe(2);
  });

  test('nothing when there is no token', () => {
    const operands = upload(device, SMALL, layOut(caseOf(5, 1)));
    const step = context.step('empty');
    attentionOf(SMALL).prefill(step, { ...operands, numTokens: 0 });
    attentionOf(SMALL).decode(step, { ...operands, numRequests: 0 });
    expect(step.submit()).toMatchObject({ numDispatches: 0, uploadedBytes: 0 });
  });

  test('the workspace serves all calls, and may grow while a step is open', async () => {
    const attention = new PagedAttention(context, SMALL);
    const small = caseOf(200, 1);
    const large = caseOf(900, 3);
    const first = upload(device, SMALL, layOut(small));
    const second = upload(device, SMALL, layOut(large));
    const { output } = await run(context, second, (step) => {
      attention.decode(step, first);
      attention.decode(step, second);
    });
    expect(relativeError(output, pagedAttentionReference(SMALL, layOut(large)))).toBeLessThan(TOLERANCE);
    const { output: again } = await run(context, first, (step) => attention.decode(step, first));
    expect(relativeError(again, pagedAttentionReference(SMALL, layOut(small)))).toBeLessThan(TOLERANCE);
    attention.destroy();
  });
});

describe('refused, with the reason, before anything is added', () => {
  test.each<[string, Partial<AttentionShape>]>([
    ['headDim 30 is not a multiple of 4', { headDim: 30 }],
    ['headDim 4 is not a multiple of 4 from 8', { headDim: 4 }],
    ['headDim 260 is not a multiple of 4 from 8 to 256', { headDim: 260 }],
    ['numKvHeads 3 does not divide numQueryHeads 4', { numKvHeads: 3 }],
    ['numKvHeads is 0', { numKvHeads: 0 }],
    ['scale NaN', { scale: Number.NaN }],
    ['softCap 0', { softCap: 0 }],
  ])('%s', (message, change) => {
    expect(() => new PagedAttention(context, { ...SMALL, ...change })).toThrow(message);
  });

  const good = upload(
    device,
    SMALL,
    layOut({
      shape: SMALL,
      requests: [{ contextLength: 9, numQueries: 1, seed: 0 }],
      keys: { tokensPerPage: 4 },
      values: { tokensPerPage: 8 },
    }),
  );
  const keys = good.keys;
  test.each<[string, Partial<DeviceOperands>]>([
    ['keys.pageStrideWords is 252, but a page of 4 tokens has 256 words', { keys: { ...keys, pageStrideWords: 252 } }],
    ['keys.pageStrideWords is 258, but the kernels read four numbers at a time', { keys: { ...keys, pageStrideWords: 258 } }],
    ['keys.baseWords is 2, but the kernels read four numbers at a time', { keys: { ...keys, baseWords: 2 } }],
    ['keys.tokensPerPage is 0', { keys: { ...keys, tokensPerPage: 0 } }],
    ['keys.tableStride is 0', { keys: { ...keys, tableStride: 0 } }],
    ['keys.table reaches to word 100, but 4 are bound', { keys: { ...keys, tableStride: 100 } }],
    ['keys.pool reaches', { keys: { ...keys, baseWords: 1_000_000 } }],
    ['slidingWindowSize is 0', { slidingWindowSize: 0 }],
    ['numSinkTokens is -1', { numSinkTokens: -1 }],
    ['numRequests is 1.5', { numRequests: 1.5 }],
    [
      'contextLength reaches',
      {
        contextLength: storageBuffer(device, 4),
        numRequests: 2,
        keys: { ...keys, tableStride: 1 },
        values: { ...(good.values as KvPages), tableStride: 1 },
      },
    ],
    ['output reaches to word 128, but 1 are bound', { output: storageBuffer(device, 4) }],
    ['queries reaches to word 128, but 1 are bound', { queries: storageBuffer(device, 4) }],
  ])('%s', (message, change) => {
    const attention = attentionOf(SMALL);
    const step = context.step('refused');
    for (const kind of ['prefill', 'decode'] as const) {
      expect(() => attention[kind](step, { ...good, ...change })).toThrow(message);
      expect(() => attention[kind](step, { ...good, ...change })).toThrow(KernelError);
    }
    expect(step.submit()).toMatchObject({ numDispatches: 0, uploadedBytes: 0 });
  });

  test('and the control case is not', () => {
    const step = context.step('control');
    attentionOf(SMALL).prefill(step, good);
    attentionOf(SMALL).decode(step, good);
    expect(step.submit().numDispatches).toBe(2);
  });
});
