import { readBytes, readF32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ComputeContext } from '../../kernel/compute-context.ts';
import type { KvPages } from '../kv-pages/kv-pages.ts';
import { type QuantisedWriteReference, quantisedPageWriteReference } from './quantised-page-write.reference.ts';
import { recordQuantisedPageWrite } from './quantised-page-write.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);

interface Case {
  numKvHeads: number;
  headDim: number;
  headsPerScale: number;
  tokensPerPage: number;
  pagesPerScalePage: number;
  /** Tokens of each request that come with each call. */
  calls: number[][];
  seed: number;
}

const someCase: fc.Arbitrary<Case> = fc
  .record({
    numKvHeads: fc.constantFrom(1, 2, 4),
    headDim: fc.constantFrom(4, 32, 40),
    sharesScale: fc.boolean(),
    tokensPerPage: fc.integer({ min: 1, max: 6 }),
    pagesPerScalePage: fc.integer({ min: 1, max: 3 }),
    numRequests: fc.integer({ min: 1, max: 3 }),
    seed: fc.nat({ max: 1000 }),
  })
  .chain(({ sharesScale, numRequests, ...rest }) =>
    fc
      .array(fc.array(fc.integer({ min: 0, max: 9 }), { minLength: numRequests, maxLength: numRequests }), {
        minLength: 1,
        maxLength: 4,
      })
      .map((calls) => ({ ...rest, calls, headsPerScale: sharesScale ? rest.numKvHeads : 1 })),
  );

/** In [-1, 1), times a factor that grows and shrinks from row to row. */
function rowsOf(numRows: number, rowNumbers: number, seed: number): Float32Array {
  return Float32Array.from({ length: numRows * rowNumbers }, (_, i) => {
    const row = Math.floor(i / rowNumbers);
    return (2 * ((((i + seed) * 0.6180339887) % 1) - 0.5) + (i % 2)) * (1 + ((row * 7 + seed) % 5));
  });
}

function layOut({
  numKvHeads,
  headDim,
  headsPerScale,
  tokensPerPage,
  pagesPerScalePage,
  calls,
}: Case): QuantisedWriteReference['target'] {
  const numRequests = calls[0].length;
  const most = calls.reduce((sum, call) => sum + Math.max(...call), 0);
  const rowStrideWords = (numKvHeads * headDim) / 4 + 1;
  const pageStrideWords = tokensPerPage * rowStrideWords + 2;
  // The last page of the last request is missing, as far as it has one; pages lie in reverse.
  const tableOf = (stride: number) =>
    Int32Array.from({ length: numRequests * stride }, (_, i) =>
      i === numRequests * stride - 1 && stride > 2 ? -1 : numRequests * stride - 1 - i,
    );
  const tableStride = Math.max(1, Math.ceil(most / tokensPerPage));
  const scaleTokens = tokensPerPage * pagesPerScalePage;
  const scaleStride = Math.max(1, Math.ceil(most / scaleTokens));
  const scalePageWords = (pagesPerScalePage * numKvHeads) / headsPerScale + 1;
  return {
    pool: new Float32Array((4 + numRequests * tableStride * pageStrideWords) * 4).fill(-128),
    table: tableOf(tableStride),
    tableStride,
    tokensPerPage,
    pageStrideWords,
    rowStrideWords,
    baseWords: 4,
    numbersPerWord: 4,
    scales: {
      pool: new Float32Array(2 + numRequests * scaleStride * scalePageWords).fill(Number.NaN),
      table: tableOf(scaleStride),
      tableStride: scaleStride,
      tokensPerPage: scaleTokens,
      pageStrideWords: scalePageWords,
      baseWords: 2,
      headsPerScale,
    },
  };
}

function upload(target: QuantisedWriteReference['target']): KvPages & { pool: GPUBuffer; scales: { pool: GPUBuffer } } {
  const table = (numbers: ArrayLike<number>) => storageBuffer(device, Int32Array.from(numbers));
  return {
    ...target,
    pool: storageBuffer(device, Int8Array.from(target.pool)),
    table: table(target.table),
    scales: {
      ...target.scales,
      pool: storageBuffer(device, Float32Array.from(target.scales.pool)),
      table: table(target.scales.table),
    },
  };
}

test('does what the reference does, call after call, whatever the pages, scales and lengths', async () => {
  await fc.assert(
    fc.asyncProperty(someCase, async (some) => {
      const { numKvHeads, headDim, calls, seed } = some;
      const target = layOut(some);
      const uploaded = upload(target);
      const contextLength = calls[0].map(() => 0);
      for (const [i, call] of calls.entries()) {
        const queryStart = [0];
        call.forEach((count, r) => {
          queryStart.push(queryStart[r] + count);
          contextLength[r] += count;
        });
        const numTokens = queryStart[call.length];
        const rows = rowsOf(numTokens + 1, numKvHeads * headDim, seed + i);
        const step = context.step('quantise');
        recordQuantisedPageWrite(step, {
          target: uploaded,
          numKvHeads,
          headDim,
          rows: step.upload(rows),
          numTokens,
          numRequests: call.length,
          queryStart: step.upload(Uint32Array.from(queryStart)),
          contextLength: step.upload(Uint32Array.from(contextLength)),
        });
        step.submit();
        quantisedPageWriteReference({ target, numKvHeads, headDim, rows, queryStart, contextLength });
      }
      const scales = await readF32(device, uploaded.scales.pool);
      const wrongScale = scales.findIndex(
        (scale, i) =>
          !(Math.abs(scale - target.scales.pool[i]) <= 1e-6 * scale) &&
          !(Number.isNaN(scale) && Number.isNaN(target.scales.pool[i])),
      );
      expect(wrongScale).toBe(-1);
      // Where a quotient lies on the border between two numbers, one rounding is as good as the other.
      const numbers = new Int8Array(await readBytes(device, uploaded.pool));
      expect(numbers.findIndex((number, i) => Math.abs(number - target.pool[i]) > 1)).toBe(-1);
      expect(numbers.filter((number, i) => number !== target.pool[i]).length).toBeLessThan(1 + numbers.length / 50);
    }),
    { numRuns: 40 },
  );
});

const small: Case = {
  numKvHeads: 2,
  headDim: 32,
  headsPerScale: 1,
  tokensPerPage: 4,
  pagesPerScalePage: 1,
  calls: [[4]],
  seed: 1,
};

describe('the numbers of a page', () => {
  test('stay within half a unit of what was written, and a unit for each time the scale grew', async () => {
    const target = layOut(small);
    const uploaded = upload(target);
    const rows = rowsOf(4, 64, 3).map((value, i) => value * 2 ** Math.floor(i / 64));
    for (let token = 0; token < 4; token++) {
      const step = context.step('one by one');
      const lengths = { queryStart: step.upload(Uint32Array.of(0, 1)), contextLength: step.upload(Uint32Array.of(token + 1)) };
      const source = { rows: step.upload(rows), rowsBaseWords: token * 64 };
      recordQuantisedPageWrite(step, {
        target: uploaded,
        numKvHeads: 2,
        headDim: 32,
        ...source,
        numTokens: 1,
        numRequests: 1,
        ...lengths,
      });
      step.submit();
    }
    const numbers = new Int8Array(await readBytes(device, uploaded.pool));
    const scales = (await readF32(device, uploaded.scales.pool)).subarray(2, 4);
    for (let token = 0; token < 4; token++) {
      for (let d = 0; d < 64; d++) {
        const scale = scales[Math.floor(d / 32)];
        const found = numbers[(4 + token * 17) * 4 + d] * scale;
        expect(Math.abs(found - rows[token * 64 + d])).toBeLessThanOrEqual(scale * (0.5 + 0.5 * (3 - token)) * 1.001);
      }
    }
  });
});

describe('refused, with the reason', () => {
  const target = upload(layOut(small));
  const buffer = storageBuffer(device, 4096);
  const good = {
    target,
    numKvHeads: 2,
    headDim: 32,
    rows: buffer,
    numTokens: 4,
    numRequests: 1,
    queryStart: buffer,
    contextLength: buffer,
  };

  test.each<[string, Partial<typeof good>]>([
    ['int8 mean nothing without the scales', { target: { ...target, scales: undefined as never } }],
    ['no whole pages of 4', { target: { ...target, scales: { ...target.scales, tokensPerPage: 6 } as never } }],
    ['headsPerScale 3 does not divide', { target: { ...target, scales: { ...target.scales, headsPerScale: 3 } as never } }],
    ['lie in one buffer', { target: { ...target, scales: { ...target.scales, pool: target.pool } as never } }],
    ['four numbers at a time', { headDim: 30 }],
    ['pages would overlap', { target: { ...target, pageStrideWords: 60 } }],
  ])('%s', (message, change) => {
    const step = context.step('refused');
    expect(() => recordQuantisedPageWrite(step, { ...good, ...change })).toThrow(
      expect.objectContaining({ code: 'kernel-layout' }),
    );
    expect(() => recordQuantisedPageWrite(step, { ...good, ...change })).toThrow(message);
    expect(step.submit()).toMatchObject({ numDispatches: 0, uploadedBytes: 0 });
  });

  test('and the control case is not', () => {
    const step = context.step('control');
    recordQuantisedPageWrite(step, good);
    expect(step.submit().numDispatches).toBe(1);
  });
});
