import { readF32, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import type { ComputeContext } from '../../kernel/compute-context.ts';
import type { ComputeStep, StepCounts } from '../../kernel/compute-step.ts';
import type { ReferencePages, ReferencePlaces, ReferenceScales } from '../kv-pages/kv-pages.reference.ts';
import { type KvPages, type KvStorage, NUMBERS_PER_WORD, type PagePlaces } from '../kv-pages/kv-pages.ts';
import { halfBits, halfNumber } from '../testing/half-floats.ts';
import { type AttentionShape, fullAttentionShape } from './attention-shape.ts';
import type { ReferenceOperands, ReferenceSelection } from './paged-attention.reference.ts';
import type { PagedAttention } from './paged-attention.ts';
import type { SelectedBlocks } from './selected-blocks.ts';

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
  /** Words between the rows of a page. A multiple of 4, default 0. */
  rowGapWords?: number;
  /** Scales, for int8: pages that a page of scales is for, and heads that share one. Default 1 and 1. */
  pagesPerScalePage?: number;
  headsPerScale?: number;
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
  /** Which blocks requests read. Where the shape selects blocks, and only there. */
  selection?: { tokensPerBlock: number; maxBlocks: number; perHead: boolean };
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
      const random = rowNumbers(seed, contextLength - numQueries + q, 1);
      for (let d = 0; d < queryWords; d++) queries[(queryStart[r] + q) * queryWords + d] = 2 * random() - 1;
    }
  });
  const selectedBlocks = layOutSelection(attentionCase);
  const { headDim, valueDim, valuesInKeys, learnedSinks } = fullAttentionShape(shape);
  return {
    keys: layOutPages(attentionCase, attentionCase.keys, headDim, selectedBlocks, 2, attentionCase.keyScale ?? 1),
    ...(valuesInKeys ? {} : { values: layOutPages(attentionCase, attentionCase.values, valueDim, selectedBlocks, 3, 1) }),
    queries,
    queryStart,
    contextLength: requests.map(({ contextLength }) => contextLength),
    slidingWindowSize,
    numSinkTokens,
    ...(learnedSinks ? { sinkScores: Array.from({ length: shape.numQueryHeads }, (_, h) => ((h * 5) % 7) - 2) } : {}),
    ...(selectedBlocks ? { selectedBlocks } : {}),
  };
}

/** For each request, or each of its heads, some blocks in some order, with holes; now and then one beyond the context. */
function layOutSelection({ shape, requests, selection, seed = 1 }: AttentionCase): ReferenceSelection | undefined {
  if (!selection) return undefined;
  const { tokensPerBlock, maxBlocks, perHead } = selection;
  const listWords = maxBlocks * (perHead ? shape.numKvHeads : 1);
  const [baseWords, pageStrideWords] = [3, listWords + 2];
  const random = randomNumbers(seed + 4);
  const pool = new Int32Array(baseWords + (requests.length + 1) * pageStrideWords).fill(0x7fffffff);
  requests.forEach(({ contextLength }, r) => {
    for (let list = 0; list < listWords; list += maxBlocks) {
      const blocks = Array.from({ length: Math.ceil(contextLength / tokensPerBlock) + 1 }, (_, block) => block);
      for (let i = 0; i < maxBlocks; i++) {
        const [block] = random() < 0.2 ? [] : blocks.splice(Math.floor(random() * blocks.length), 1);
        pool[baseWords + (requests.length - r) * pageStrideWords + list + i] = block ?? -1;
      }
    }
  });
  const table = requests.map((_, r) => requests.length - r);
  return { pool, table, pageStrideWords, baseWords, maxBlocks, tokensPerBlock, perHead };
}

/** Whether some query of the request sees the token. */
function isVisible(attentionCase: AttentionCase, selected: ReferenceSelection | undefined, r: number, token: number): boolean {
  const { requests, slidingWindowSize = Infinity, numSinkTokens = 0 } = attentionCase;
  const { contextLength, numQueries } = requests[r];
  if (token >= contextLength || numQueries === 0) return false;
  if (contextLength - numQueries - token >= slidingWindowSize && token >= numSinkTokens) return false;
  if (!selected) return true;
  const { pool, table, baseWords = 0, pageStrideWords, tokensPerBlock } = selected;
  const page = baseWords + table[r] * pageStrideWords;
  return (pool as Int32Array).subarray(page, page + pageStrideWords).includes(Math.floor(token / tokensPerBlock));
}

function layOutPages(
  attentionCase: AttentionCase,
  pageCase: PageCase,
  dim: number,
  selected: ReferenceSelection | undefined,
  salt: number,
  factor: number,
): ReferencePages {
  const { numKvHeads, storage = 'f32' } = attentionCase.shape;
  const { tokensPerPage, gapWords = 0, baseWords = 0, rowGapWords = 0 } = pageCase;
  const numbersPerWord = NUMBERS_PER_WORD[storage];
  const rowNumbersCount = numKvHeads * dim;
  const rowStrideWords = rowNumbersCount / numbersPerWord + rowGapWords;
  const pageStrideWords = tokensPerPage * rowStrideWords + gapWords;
  const { table, tableStride, numPages } = placePages(attentionCase, tokensPerPage, selected, salt);
  const pool = new Float32Array((baseWords + numPages * pageStrideWords) * numbersPerWord).fill(Number.NaN);
  forEachVisible(attentionCase, selected, (r, token, seed) => {
    const page = table[r * tableStride + Math.floor(token / tokensPerPage)];
    const word = baseWords + page * pageStrideWords + (token % tokensPerPage) * rowStrideWords;
    const random = rowNumbers(seed, token, salt);
    for (let d = 0; d < rowNumbersCount; d++) {
      pool[word * numbersPerWord + d] = stored(factor * (2 * random() - 1), storage);
    }
  });
  const places = { table, tableStride, tokensPerPage, pageStrideWords, baseWords };
  const scales = storage === 'int8' ? layOutScales(attentionCase, pageCase, selected, salt) : undefined;
  return { pool, ...places, numbersPerWord, rowStrideWords, ...(scales ? { scales } : {}) };
}

/** A number as its storage has it, so that nothing is lost where it is uploaded. */
function stored(number: number, storage: KvStorage): number {
  if (storage === 'int8') return Math.round(127 * number);
  return storage === 'f16' ? halfNumber(halfBits(number)) : number;
}

/** Scales of the pages of keys or values: a number for each page (by its first token) and head. */
function layOutScales(
  attentionCase: AttentionCase,
  pageCase: PageCase,
  selected: ReferenceSelection | undefined,
  salt: number,
): ReferenceScales {
  const { tokensPerPage, pagesPerScalePage = 1, headsPerScale = 1 } = pageCase;
  const rowWords = attentionCase.shape.numKvHeads / headsPerScale;
  const [baseWords, pageStrideWords] = [1, pagesPerScalePage * rowWords + 3];
  const tokensPerScalePage = tokensPerPage * pagesPerScalePage;
  const { table, tableStride, numPages } = placePages(attentionCase, tokensPerScalePage, selected, salt + 10);
  const pool = new Float32Array(baseWords + numPages * pageStrideWords).fill(Number.NaN);
  forEachVisible(attentionCase, selected, (r, token, seed) => {
    const page = table[r * tableStride + Math.floor(token / tokensPerScalePage)];
    const firstToken = token - (token % tokensPerPage);
    const word = baseWords + page * pageStrideWords + ((firstToken % tokensPerScalePage) / tokensPerPage) * rowWords;
    const random = rowNumbers(seed, firstToken, salt + 20);
    for (let h = 0; h < rowWords; h++) pool[word + h] = (0.5 + random()) / 127;
  });
  return { pool, table, tableStride, tokensPerPage: tokensPerScalePage, pageStrideWords, baseWords, headsPerScale };
}

/** A page in random order for each that has a visible token, and some that nobody has. */
function placePages(
  attentionCase: AttentionCase,
  tokensPerPage: number,
  selected: ReferenceSelection | undefined,
  salt: number,
): { table: Int32Array; tableStride: number; numPages: number } {
  const { requests, seed = 1, sharePages = false } = attentionCase;
  // One entry more than is needed: a hole, and the border to the next request.
  const tableStride = 1 + Math.max(0, ...requests.map(({ contextLength }) => Math.ceil(contextLength / tokensPerPage)));
  const numPages = 2 + requests.length * tableStride;
  const random = randomNumbers(seed + salt);
  const order = Array.from({ length: numPages }, (_, page) => ({ page, at: random() }));
  const free = order.sort((a, b) => a.at - b.at).map(({ page }) => page);
  const table = new Int32Array(requests.length * tableStride).fill(-1);
  const shared = new Map<string, number>();
  forEachVisible(attentionCase, selected, (r, token, requestSeed) => {
    const column = Math.floor(token / tokensPerPage);
    const entry = r * tableStride + column;
    if (table[entry] >= 0) return;
    const key = `${requestSeed} ${column}`;
    table[entry] = (sharePages ? shared.get(key) : undefined) ?? (free.pop() as number);
    shared.set(key, table[entry]);
  });
  return { table, tableStride, numPages };
}

function forEachVisible(
  attentionCase: AttentionCase,
  selected: ReferenceSelection | undefined,
  visit: (request: number, token: number, seed: number) => void,
): void {
  attentionCase.requests.forEach(({ contextLength, seed }, r) => {
    for (let token = 0; token < contextLength; token++) {
      if (isVisible(attentionCase, selected, r, token)) visit(r, token, seed);
    }
  });
}

function rowNumbers(seed: number, token: number, salt: number): () => number {
  return randomNumbers(seed * 7919 + token * 31 + salt);
}

/** Operands on the device. Keys and values have a buffer each, or share one: values behind keys. */
export interface DeviceOperands {
  keys: KvPages;
  values?: KvPages;
  queries: GPUBuffer;
  queryStart: GPUBuffer;
  contextLength: GPUBuffer;
  output: GPUBuffer;
  numTokens: number;
  numRequests: number;
  maxContextLength: number;
  slidingWindowSize?: number;
  numSinkTokens?: number;
  sinkScores?: ArrayLike<number>;
  selectedBlocks?: SelectedBlocks;
}

export function upload(
  device: GPUDevice,
  shape: AttentionShape,
  operands: ReferenceOperands,
  options: { onePool?: boolean } = {},
): DeviceOperands {
  const { keys, values, slidingWindowSize, numSinkTokens, sinkScores, selectedBlocks } = operands;
  const numRequests = operands.contextLength.length;
  const queries = Float32Array.from(operands.queries);
  const { storage, numQueryHeads, valueDim } = fullAttentionShape(shape);
  const places = (from: ReferencePlaces, pool: GPUBuffer, shift = 0): PagePlaces => ({
    pool,
    table: storageBuffer(device, Int32Array.from(from.table)),
    tableStride: from.tableStride,
    tokensPerPage: from.tokensPerPage,
    pageStrideWords: from.pageStrideWords,
    baseWords: (from.baseWords ?? 0) + shift,
  });
  const pages = (from: ReferencePages, pool = storageBuffer(device, storedWords(from.pool, storage)), shift = 0): KvPages => ({
    ...places(from, pool, shift),
    rowStrideWords: from.rowStrideWords,
    ...(from.scales ? { scales: scalesOf(from.scales) } : {}),
  });
  const scalesOf = (from: ReferenceScales) => ({
    ...places(from, storageBuffer(device, Float32Array.from(from.pool))),
    headsPerScale: from.headsPerScale,
  });
  const both =
    options.onePool && values
      ? storageBuffer(device, storedWords([...Array.from(keys.pool), ...Array.from(values.pool)], storage))
      : undefined;
  const numTokens = operands.queryStart[numRequests];
  return {
    keys: pages(keys, both),
    ...(values ? { values: pages(values, both, both && keys.pool.length / NUMBERS_PER_WORD[storage]) } : {}),
    queries: storageBuffer(device, queries),
    queryStart: storageBuffer(device, Uint32Array.from(operands.queryStart)),
    contextLength: storageBuffer(device, Uint32Array.from(operands.contextLength)),
    output: storageBuffer(device, new Float32Array(numTokens * numQueryHeads * valueDim).fill(Number.NaN)),
    numTokens,
    numRequests,
    maxContextLength: Math.max(0, ...Array.from(operands.contextLength)),
    slidingWindowSize,
    numSinkTokens,
    ...(sinkScores ? { sinkScores } : {}),
    ...(selectedBlocks
      ? {
          selectedBlocks: {
            ...selectedBlocks,
            pool: storageBuffer(device, Int32Array.from(selectedBlocks.pool)),
            table: storageBuffer(device, Int32Array.from(selectedBlocks.table)),
          },
        }
      : {}),
  };
}

/** Numbers as a pool has them. Where there is none (NaN), int8 has something that is no number of the test. */
function storedWords(numbers: ArrayLike<number>, storage: KvStorage): ArrayBufferView {
  if (storage === 'f32') return Float32Array.from(numbers);
  if (storage === 'f16') return Uint16Array.from(numbers, halfBits);
  return Int8Array.from(numbers, (number) => (Number.isNaN(number) ? -128 : number));
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
  const operands = upload(context.device, attentionCase.shape, layOut(attentionCase));
  return (await run(context, operands, (step) => attention.prefill(step, operands))).output;
}

/** `layOut`, `upload` and one `decode`: every request has one query. */
export async function decodeOf(
  context: ComputeContext,
  attention: PagedAttention,
  attentionCase: AttentionCase,
): Promise<Float32Array> {
  const operands = upload(context.device, attentionCase.shape, layOut(attentionCase));
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
