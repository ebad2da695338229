import { readF32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ComputeContext } from '../../kernel/compute-context.ts';
import { pageWriteReference } from './page-write.reference.ts';
import { type PageWriteShape, pageWriteKernels, recordPageWrite } from './page-write.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);

interface Case {
  shape: Required<PageWriteShape>;
  tokens: Int32Array;
  pageTable: Int32Array;
  numPages: number;
}

/** Requests with distinct pages and holes; each token at a position of its own, some of them outside the table. */
const someCase: fc.Arbitrary<Case> = fc
  .record({
    unitWords: fc.constantFrom(1, 4),
    rowUnits: fc.integer({ min: 1, max: 70 }),
    gaps: fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 3 }), fc.nat({ max: 3 }), fc.nat({ max: 3 })),
    tokensPerPage: fc.integer({ min: 1, max: 6 }),
    tableStride: fc.integer({ min: 1, max: 4 }),
    numRequests: fc.integer({ min: 1, max: 3 }),
  })
  .chain((sizes) => {
    const { tokensPerPage, tableStride, numRequests, unitWords, rowUnits, gaps } = sizes;
    const numEntries = numRequests * tableStride;
    const places = Array.from({ length: numRequests * (tableStride + 1) * tokensPerPage }, (_, i) => [
      i % numRequests,
      Math.floor(i / numRequests),
    ]);
    return fc
      .record({
        chosen: fc.shuffledSubarray([...places, [-1, 0], [0, -1]], { minLength: 1 }),
        pages: shuffled(numEntries + 2),
        holes: holes(numEntries),
      })
      .map(({ chosen, pages, holes: isHole }) => {
        const rowWords = rowUnits * unitWords;
        return {
          shape: {
            numTokens: chosen.length,
            tokensPerPage,
            tableStride,
            rowWords,
            rowStrideWords: rowWords + gaps[0] * unitWords,
            rowsBaseWords: gaps[1] * unitWords,
            pageStrideWords: tokensPerPage * rowWords + gaps[2] * unitWords,
            pagesBaseWords: gaps[3] * unitWords,
          },
          tokens: Int32Array.from(chosen.flat()),
          pageTable: Int32Array.from({ length: numEntries }, (_, i) => (isHole[i] ? -1 : pages[i])),
          numPages: numEntries + 2,
        };
      });
  });

function shuffled(length: number): fc.Arbitrary<number[]> {
  return fc.shuffledSubarray(
    Array.from({ length }, (_, i) => i),
    { minLength: length },
  );
}

function holes(length: number): fc.Arbitrary<boolean[]> {
  return fc.array(
    fc.nat({ max: 4 }).map((one) => one === 0),
    { minLength: length, maxLength: length },
  );
}

/** Distinct in every word, and never 0. */
const counting = (length: number) => Float32Array.from({ length }, (_, i) => i + 1);

test('page write does what the reference does, whatever the widths, strides and holes', async () => {
  await fc.assert(
    fc.asyncProperty(someCase, async ({ shape, tokens, pageTable, numPages }) => {
      const rows = counting(shape.rowsBaseWords + shape.numTokens * shape.rowStrideWords);
      const expected = counting(shape.pagesBaseWords + numPages * shape.pageStrideWords).map((value) => -value);
      const pages = storageBuffer(device, expected);
      const step = context.step('write');
      const buffers = { rows: step.upload(rows), tokens: step.upload(tokens), pageTable: step.upload(pageTable) };
      recordPageWrite(step, { shape, ...buffers, pages });
      step.submit();
      pageWriteReference(shape, rows, tokens, pageTable, expected);
      const found = await readF32(device, pages);
      expect(found.findIndex((value, i) => value !== expected[i])).toBe(-1);
      pages.destroy();
    }),
    { numRuns: 80 },
  );
});

test('keys and values of one pool are written by one dispatch each', async () => {
  const tokensPerPage = 2;
  const pages = storageBuffer(device, 4 * 8 * 4);
  const step = context.step('keys and values');
  const rows = step.upload(Float32Array.of(1, 1, 2, 2, 3, 3, 4, 4));
  const tokens = step.upload(Int32Array.of(0, 2, 0, 3));
  const shape = { numTokens: 2, tokensPerPage, tableStride: 2, rowWords: 2, rowStrideWords: 4, pageStrideWords: 4 };
  recordPageWrite(step, { shape, rows, tokens, pages, pageTable: step.upload(Int32Array.of(0, 2)) });
  recordPageWrite(step, {
    shape: { ...shape, rowsBaseWords: 2 },
    rows,
    tokens,
    pages,
    pageTable: step.upload(Int32Array.of(1, 3)),
  });
  expect(step.submit().numDispatches).toBe(2);
  expect([...(await readF32(device, pages)).subarray(8, 16)]).toEqual([1, 1, 3, 3, 2, 2, 4, 4]);
});

test('more tokens than one dimension of workgroups holds all arrive', async () => {
  const numTokens = 65_537;
  const pages = storageBuffer(device, numTokens * 4);
  const step = context.step('many');
  const tokens = step.upload(Int32Array.from({ length: numTokens * 2 }, (_, i) => (i % 2 === 0 ? 0 : i >> 1)));
  const shape = { numTokens, tokensPerPage: numTokens, tableStride: 1, rowWords: 1, pageStrideWords: numTokens };
  recordPageWrite(step, {
    shape,
    rows: step.upload(counting(numTokens)),
    tokens,
    pages,
    pageTable: step.upload(Int32Array.of(0)),
  });
  step.submit();
  expect((await readF32(device, pages)).every((value, i) => value === i + 1)).toBe(true);
});

test('shapes whose rows or pages overlap are refused', () => {
  const step = context.step('overlap');
  const buffer = storageBuffer(device, 64);
  const other = storageBuffer(device, 64);
  const buffers = { rows: buffer, tokens: buffer, pageTable: buffer, pages: other };
  const shape = { numTokens: 1, tokensPerPage: 2, tableStride: 1, rowWords: 4, pageStrideWords: 8 };
  expect(() => recordPageWrite(step, { shape, ...buffers })).not.toThrow();
  expect(() => recordPageWrite(step, { shape: { ...shape, pageStrideWords: 7 }, ...buffers })).toThrow('would overlap');
  expect(() => recordPageWrite(step, { shape: { ...shape, rowStrideWords: 3 }, ...buffers })).toThrow('would overlap');
  expect(() => recordPageWrite(step, { shape: { ...shape, tokensPerPage: 0 }, ...buffers })).toThrow('would overlap');
});

test('both variants compile ahead of their use', async () => {
  for (const kernel of Object.values(pageWriteKernels)) await expect(context.warmUp(kernel)).resolves.toBeUndefined();
});
