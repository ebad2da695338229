import { readBytes, readF32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ComputeContext } from '../../kernel/compute-context.ts';
import { halfBits, halfNumber } from '../testing/half-floats.ts';
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
    storage: fc.constantFrom('f32', 'f16'),
    wide: fc.boolean(),
    rowUnits: fc.integer({ min: 1, max: 70 }),
    gaps: fc.array(fc.nat({ max: 3 }), { minLength: 5, maxLength: 5 }),
    tokensPerPage: fc.integer({ min: 1, max: 6 }),
    tableStride: fc.integer({ min: 1, max: 4 }),
    numRequests: fc.integer({ min: 1, max: 3 }),
  })
  .chain((sizes) => {
    const { storage, wide, tokensPerPage, tableStride, numRequests, rowUnits, gaps } = sizes;
    const numbersPerWord = storage === 'f16' ? 2 : 1;
    const unitWords = wide ? 4 : numbersPerWord;
    const storedUnitWords = unitWords / numbersPerWord;
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
        const pageRowStrideWords = (rowUnits + gaps[4]) * storedUnitWords;
        return {
          shape: {
            numTokens: chosen.length,
            tokensPerPage,
            tableStride,
            rowWords,
            rowStrideWords: rowWords + gaps[0] * unitWords,
            rowsBaseWords: gaps[1] * unitWords,
            pageRowStrideWords,
            pageStrideWords: tokensPerPage * pageRowStrideWords + gaps[2] * storedUnitWords,
            pagesBaseWords: gaps[3] * storedUnitWords,
            storage,
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

/** Never 0, and integers that f16 has: distinct over 2,048 of them. */
const countingHalves = (length: number) => counting(length).map((value) => ((value - 1) % 2048) + 1);

test('page write does what the reference does, whatever the storage, the widths, strides and holes', async () => {
  await fc.assert(
    fc.asyncProperty(someCase, async ({ shape, tokens, pageTable, numPages }) => {
      const halves = shape.storage === 'f16';
      const rows = countingHalves(shape.rowsBaseWords + shape.numTokens * shape.rowStrideWords);
      const pageWords = shape.pagesBaseWords + numPages * shape.pageStrideWords;
      const expected = countingHalves(pageWords * (halves ? 2 : 1)).map((value) => -value);
      const pages = storageBuffer(device, halves ? Uint16Array.from(expected, halfBits) : expected);
      const step = context.step('write');
      const buffers = { rows: step.upload(rows), tokens: step.upload(tokens), pageTable: step.upload(pageTable) };
      recordPageWrite(step, { shape, ...buffers, pages });
      step.submit();
      pageWriteReference(shape, rows, tokens, pageTable, expected);
      const bytes = await readBytes(device, pages);
      const found = halves ? Float32Array.from(new Uint16Array(bytes), halfNumber) : new Float32Array(bytes);
      expect(found.findIndex((value, i) => value !== expected[i])).toBe(-1);
      pages.destroy();
    }),
    { numRuns: 80 },
  );
});

test('f16 rounds to a neighbour, and holds what is too large to the largest number', async () => {
  const numbers = [1 + 2 ** -12, -1e-9, Math.PI, 65504, 70_000, -1e30, 2 ** -15, 0];
  const pages = storageBuffer(device, 2 * numbers.length);
  const step = context.step('halves');
  const shape = { numTokens: 1, tokensPerPage: 1, tableStride: 1, rowWords: 8, pageStrideWords: 4, storage: 'f16' } as const;
  const [rows, tokens] = [step.upload(Float32Array.from(numbers)), step.upload(Int32Array.of(0, 0))];
  recordPageWrite(step, { shape, rows, tokens, pages, pageTable: step.upload(Int32Array.of(0)) });
  step.submit();
  const found = Array.from(new Uint16Array(await readBytes(device, pages)), halfNumber);
  numbers.forEach((number, i) => {
    const held = Math.max(-65504, Math.min(65504, number));
    expect(Math.abs(found[i] - held)).toBeLessThanOrEqual(Math.max(Math.abs(held) * 2 ** -10, 2 ** -24));
  });
});

test('two parts of a row are written by one dispatch each', async () => {
  const pages = storageBuffer(device, 2 * 12);
  const step = context.step('latent and rotated part');
  const [tokens, pageTable] = [step.upload(Int32Array.of(0, 0, 0, 1)), step.upload(Int32Array.of(0))];
  const shape = { numTokens: 2, tokensPerPage: 2, tableStride: 1, pageRowStrideWords: 3, pageStrideWords: 6 };
  const [wide, narrow] = [step.upload(Float32Array.of(1, 2, 3, 4)), step.upload(Float32Array.of(5, 6))];
  recordPageWrite(step, { shape: { ...shape, rowWords: 2 }, rows: wide, tokens, pageTable, pages });
  recordPageWrite(step, { shape: { ...shape, rowWords: 1, pagesBaseWords: 2 }, rows: narrow, tokens, pageTable, pages });
  step.submit();
  expect([...(await readF32(device, pages))]).toEqual([1, 2, 5, 3, 4, 6]);
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

test('rows of f16 that begin or end inside a word are refused', () => {
  const step = context.step('halves');
  const buffer = storageBuffer(device, 64);
  const buffers = { rows: buffer, tokens: buffer, pageTable: buffer, pages: storageBuffer(device, 64) };
  const shape = { numTokens: 1, tokensPerPage: 2, tableStride: 1, rowWords: 4, pageStrideWords: 4, storage: 'f16' } as const;
  expect(() => recordPageWrite(step, { shape, ...buffers })).not.toThrow();
  for (const odd of [{ rowWords: 3 }, { rowsBaseWords: 1 }, { rowStrideWords: 5 }]) {
    expect(() => recordPageWrite(step, { shape: { ...shape, ...odd }, ...buffers })).toThrow('inside a word of f16');
  }
});

test('all variants compile ahead of their use', async () => {
  for (const kernel of Object.values(pageWriteKernels)) await expect(context.warmUp(kernel)).resolves.toBeUndefined();
});
