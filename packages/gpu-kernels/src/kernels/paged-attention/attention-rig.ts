import { readF32, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import type { ComputeContext } from '../../kernel/compute-context.ts';
import type { ComputeStep, StepCounts } from '../../kernel/compute-step.ts';
import type { AttentionShape } from './attention-shape.ts';
import type { KvPages } from './kv-pages.ts';
import type { ReferenceOperands, ReferencePages } from './paged-attention.reference.ts';
import type { PagedAttention } from './paged-attention.ts';

/** Cases for the tests: what requests attend to, laid out in pages in which everything that no query sees is NaN. */

export interface RequestCase {
  /** Tokens with keys and values. */
  contextLength: number;
  /** Queries of this call, the last tokens of the context. */
  numQueries: number;
  /** Seeds the tokens. Requests of equal seeds have equal keys, values and queries at equal positions. */
  seed: number;
}

export interface PageCase {
  tokensPerPage: number;
  /** Words between the end of a page and the next, and before page 0. Multiples of 4, default 0. */
  gapWords?: number;
  baseWords?: number;
}

export interface AttentionCase {
  shape: AttentionShape;
  requests: readonly RequestCase[];
  keys: PageCase;
  values: PageCase;
  slidingWindowSize?: number;
  numSinkTokens?: number;
  /** Orders the pages. */
  seed?: number;
  /** Requests of equal seeds share the pages that they have both. */
  sharePages?: boolean;
  /** Factor of keys: large ones make scores that overflow where they are not handled with care. Default 1. */
  keyScale?: number;
}

/** A sequence of numbers in [0, 1), the same for the same seed. */
export function randomNumbers(seed: number): () => number {
  let state = (seed * 2654435761 + 12345) >>> 0;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

/** Plain arrays for the reference, with one pool for keys and one for values. */
export function layOut(attentionCase: AttentionCase): ReferenceOperands {
  const { shape, requests, slidingWindowSize, numSinkTokens } = attentionCase;
  const queryWords = shape.numQueryHeads * shape.headDim;
  const queryStart = [0];
  for (const { numQueries } of requests) queryStart.push((queryStart.at(-1) as number) + numQueries);
  const queries = new Float32Array(queryWords * (queryStart.at(-1) as number));
  requests.forEach(({ contextLength, numQueries, seed }, r) => {
    for (let q = 0; q < numQueries; q++) {
      fillRow(queries, (queryStart[r] + q) * queryWords, queryWords, seed, contextLength - numQueries + q, 1, 1);
    }
  });
  return {
    keys: layOutPages(attentionCase, attentionCase.keys, 2, attentionCase.keyScale ?? 1),
    values: layOutPages(attentionCase, attentionCase.values, 3, 1),
    queries,
    queryStart,
    contextLength: requests.map(({ contextLength }) => contextLength),
    slidingWindowSize,
    numSinkTokens,
  };
}

function layOutPages(attentionCase: AttentionCase, pageCase: PageCase, salt: number, factor: number): ReferencePages {
  const { shape, requests, slidingWindowSize = Infinity, numSinkTokens = 0, seed = 1, sharePages = false } = attentionCase;
  const { tokensPerPage, gapWords = 0, baseWords = 0 } = pageCase;
  const rowWords = shape.numKvHeads * shape.headDim;
  const pageStrideWords = tokensPerPage * rowWords + gapWords;
  // One entry more than is needed: a hole, and the border to the next request.
  const tableStride = 1 + Math.max(0, ...requests.map(({ contextLength }) => Math.ceil(contextLength / tokensPerPage)));
  const isVisible = ({ contextLength, numQueries }: RequestCase, token: number) =>
    token < contextLength && numQueries > 0 && (contextLength - numQueries - token < slidingWindowSize || token < numSinkTokens);

  const numPages = 2 + requests.length * tableStride;
  const random = randomNumbers(seed + salt);
  const order = Array.from({ length: numPages }, (_, page) => ({ page, at: random() }));
  const free = order.sort((a, b) => a.at - b.at).map(({ page }) => page);
  const table = new Int32Array(requests.length * tableStride).fill(-1);
  const pool = new Float32Array(baseWords + numPages * pageStrideWords).fill(Number.NaN);
  const shared = new Map<string, number>();
  requests.forEach((request, r) => {
    for (let column = 0; column < tableStride; column++) {
      for (let token = column * tokensPerPage; token < (column + 1) * tokensPerPage; token++) {
        if (!isVisible(request, token)) continue;
        const key = `${request.seed} ${column}`;
        const page = (sharePages ? shared.get(key) : undefined) ?? pageOf(table, r * tableStride + column, free);
        shared.set(key, page);
        table[r * tableStride + column] = page;
        const word = baseWords + page * pageStrideWords + (token % tokensPerPage) * rowWords;
        fillRow(pool, word, rowWords, request.seed, token, salt, factor);
      }
    }
  });
  return { pool, table, tableStride, tokensPerPage, pageStrideWords, baseWords };
}

function pageOf(table: Int32Array, entry: number, free: number[]): number {
  return table[entry] >= 0 ? table[entry] : (free.pop() as number);
}

function fillRow(
  out: Float32Array,
  word: number,
  length: number,
  seed: number,
  token: number,
  salt: number,
  factor: number,
): void {
  const random = randomNumbers(seed * 7919 + token * 31 + salt);
  for (let d = 0; d < length; d++) out[word + d] = factor * (2 * random() - 1);
}

/** Operands on the device. Keys and values have a buffer each, or share one: values behind keys. */
export interface DeviceOperands {
  keys: KvPages;
  values: KvPages;
  queries: GPUBuffer;
  queryStart: GPUBuffer;
  contextLength: GPUBuffer;
  output: GPUBuffer;
  numTokens: number;
  numRequests: number;
  maxContextLength: number;
  slidingWindowSize?: number;
  numSinkTokens?: number;
}

export function upload(device: GPUDevice, operands: ReferenceOperands, options: { onePool?: boolean } = {}): DeviceOperands {
  const { keys, values, slidingWindowSize, numSinkTokens } = operands;
  const numRequests = operands.contextLength.length;
  const queries = Float32Array.from(operands.queries);
  const pages = (from: ReferencePages, pool = storageBuffer(device, Float32Array.from(from.pool)), shift = 0): KvPages => ({
    pool,
    table: storageBuffer(device, Int32Array.from(from.table)),
    tableStride: from.tableStride,
    tokensPerPage: from.tokensPerPage,
    pageStrideWords: from.pageStrideWords,
    baseWords: (from.baseWords ?? 0) + shift,
  });
  const both = options.onePool
    ? storageBuffer(device, Float32Array.from([...Array.from(keys.pool), ...Array.from(values.pool)]))
    : undefined;
  return {
    keys: pages(keys, both),
    values: pages(values, both, both && keys.pool.length),
    queries: storageBuffer(device, queries),
    queryStart: storageBuffer(device, Uint32Array.from(operands.queryStart)),
    contextLength: storageBuffer(device, Uint32Array.from(operands.contextLength)),
    output: storageBuffer(device, new Float32Array(queries.length).fill(Number.NaN)),
    numTokens: operands.queryStart[numRequests],
    numRequests,
    maxContextLength: Math.max(0, ...Array.from(operands.contextLength)),
    slidingWindowSize,
    numSinkTokens,
  };
}

/** Runs one step and reads the output. */
export async function run(
  context: ComputeContext,
  operands: DeviceOperands,
  record: (step: ComputeStep) => void,
): Promise<{ output: Float32Array; counts: StepCounts }> {
  const step = context.step('paged attention');
  record(step);
  const counts = step.submit();
  return { output: await readF32(context.device, operands.output), counts };
}

/** `layOut`, `upload` and one `prefill`. */
export async function prefillOf(
  context: ComputeContext,
  attention: PagedAttention,
  attentionCase: AttentionCase,
): Promise<Float32Array> {
  const operands = upload(context.device, layOut(attentionCase));
  return (await run(context, operands, (step) => attention.prefill(step, operands))).output;
}

/** `layOut`, `upload` and one `decode`: every request has one query. */
export async function decodeOf(
  context: ComputeContext,
  attention: PagedAttention,
  attentionCase: AttentionCase,
): Promise<Float32Array> {
  const operands = upload(context.device, layOut(attentionCase));
  return (await run(context, operands, (step) => attention.decode(step, operands))).output;
}

/** Largest difference, relative to the largest number of the reference. NaN where a number is NaN. */
export function relativeError(found: Float32Array, expected: ArrayLike<number>): number {
  let largest = 0;
  let difference = 0;
  for (let i = 0; i < expected.length; i++) {
    largest = Math.max(largest, Math.abs(expected[i]));
    difference = Math.max(difference, Math.abs(found[i] - expected[i]));
  }
  return largest === 0 ? difference : difference / largest;
}
