import { requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { expect, test } from 'vitest';
import { ComputeContext } from '../../kernel/compute-context.ts';
import type { ComputeStep } from '../../kernel/compute-step.ts';
import type { KvPages, KvStorage } from '../kv-pages/kv-pages.ts';
import { NUMBERS_PER_WORD } from '../kv-pages/kv-pages.ts';
import { recordPageWrite } from '../page-write/page-write.ts';
import { recordQuantisedPageWrite } from '../page-write/quantised-page-write.ts';
import { randomNumbers, relativeError, run } from './attention-rig.ts';
import type { AttentionShape } from './attention-shape.ts';
import { pagedAttentionReference } from './paged-attention.reference.ts';
import { PagedAttention } from './paged-attention.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);

const SHAPE: AttentionShape = { numQueryHeads: 4, numKvHeads: 2, headDim: 32 };
const [TOKENS_PER_PAGE, NUM_PAGES, ROW_NUMBERS, QUERY_NUMBERS] = [8, 7, 64, 128];
const ALL_TOKENS = 41;
const TABLE = Int32Array.of(4, 0, 6, 2, 5, 1);

const numbers = (length: number, seed: number) => {
  const random = randomNumbers(seed);
  return Float32Array.from({ length }, () => 2 * random() - 1);
};

/** Pages full of NaN, and of what is no number of the test. */
function emptyPages(storage: KvStorage): KvPages {
  const pageStrideWords = (TOKENS_PER_PAGE * ROW_NUMBERS) / NUMBERS_PER_WORD[storage];
  const table = storageBuffer(device, TABLE);
  const places = { table, tableStride: TABLE.length, tokensPerPage: TOKENS_PER_PAGE };
  const pool = storageBuffer(device, new Uint32Array(NUM_PAGES * pageStrideWords).fill(0xffff_ffff));
  const scalePool = storageBuffer(device, new Float32Array(NUM_PAGES * SHAPE.numKvHeads).fill(Number.NaN));
  const scales = { ...places, pool: scalePool, pageStrideWords: SHAPE.numKvHeads };
  return { ...places, pool, pageStrideWords, ...(storage === 'int8' ? { scales } : {}) };
}

/** Writes rows for the tokens in [begin, end). */
function write(step: ComputeStep, storage: KvStorage, target: KvPages, rows: Float32Array, begin: number, end: number): void {
  const numTokens = end - begin;
  const data = step.upload(rows.subarray(begin * ROW_NUMBERS, end * ROW_NUMBERS));
  if (storage === 'int8') {
    const [queryStart, contextLength] = [step.upload(Uint32Array.of(0, numTokens)), step.upload(Uint32Array.of(end))];
    const sizes = { numKvHeads: SHAPE.numKvHeads, headDim: SHAPE.headDim, numTokens, numRequests: 1 };
    recordQuantisedPageWrite(step, { target, ...sizes, rows: data, queryStart, contextLength });
    return;
  }
  const { tokensPerPage, tableStride, pageStrideWords } = target;
  const tokens = step.upload(Int32Array.from({ length: 2 * numTokens }, (_, i) => (i % 2 === 0 ? 0 : begin + (i >> 1))));
  const shape = { numTokens, tokensPerPage, tableStride, rowWords: ROW_NUMBERS, pageStrideWords, storage };
  recordPageWrite(step, { shape, rows: data, tokens, pageTable: target.table, pages: target.pool as GPUBuffer });
}

test.each([
  ['f32', 1e-4],
  ['f16', 2e-3],
  ['int8', 1e-2],
] as const)('what is written as %s and read again is the attention of the rows, but for rounding', async (storage, tolerance) => {
  const [keyRows, valueRows, queries] = [1, 2, 3].map((seed) => numbers(ALL_TOKENS * QUERY_NUMBERS, seed));
  const identity = { table: [0], tableStride: 1, tokensPerPage: ALL_TOKENS, pageStrideWords: 0 };
  const [keys, values] = [emptyPages(storage), emptyPages(storage)];
  const attention = new PagedAttention(context, { ...SHAPE, storage });
  // A prompt in two chunks, then one token after the other.
  const borders = [0, 19, 37, 38, 39, 40, 41];
  for (let i = 0; i + 1 < borders.length; i++) {
    const [begin, end] = [borders[i], borders[i + 1]];
    const numTokens = end - begin;
    const some = {
      keys,
      values,
      queries: storageBuffer(device, queries.subarray(begin * QUERY_NUMBERS, end * QUERY_NUMBERS)),
      queryStart: storageBuffer(device, Uint32Array.of(0, numTokens)),
      contextLength: storageBuffer(device, Uint32Array.of(end)),
      output: storageBuffer(device, 4 * numTokens * QUERY_NUMBERS),
      numTokens,
      numRequests: 1,
      maxContextLength: end,
    };
    const { output } = await run(context, some, (step) => {
      write(step, storage, keys, keyRows, begin, end);
      write(step, storage, values, valueRows, begin, end);
      attention[numTokens === 1 ? 'decode' : 'prefill'](step, some);
    });
    const expected = pagedAttentionReference(SHAPE, {
      keys: { ...identity, pool: keyRows },
      values: { ...identity, pool: valueRows },
      queries: queries.subarray(begin * QUERY_NUMBERS, end * QUERY_NUMBERS),
      queryStart: [0, numTokens],
      contextLength: [end],
    });
    expect(relativeError(output, expected)).toBeLessThan(tolerance);
  }
  attention.destroy();
});
