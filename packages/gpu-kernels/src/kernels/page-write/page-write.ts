import { KernelError } from '../../errors/kernel-error.ts';
import type { Binding, ComputeStep } from '../../kernel/compute-step.ts';
import { defineKernel } from '../../kernel/kernel.ts';
import { packParams } from '../../kernel/params.ts';
import { layoutError, NUMBERS_PER_WORD } from '../kv-pages/kv-pages.ts';
import code from './page-write.wgsl';

/** Where the rows of each token come from and go to. All lengths in 32-bit words. */
export interface PageWriteShape {
  numTokens: number;
  /** Tokens that one page of this buffer holds: tokensPerBlock, or its override. */
  tokensPerPage: number;
  /** Entries of the page table for one request. */
  tableStride: number;
  /** Words of one row in `rows`: the numbers that one token has in this buffer. In a page of f16 they take half of it. */
  rowWords: number;
  /** Words from one row of `rows` to the next, >= rowWords. Default rowWords. */
  rowStrideWords?: number;
  /** First word of the first row in `rows`: 0, or the place of the keys in a row of queries, keys and values. Default 0. */
  rowsBaseWords?: number;
  /** Words from one row of a page to the next, at least a row as it is stored. More where a row has several parts. Default: a row. */
  pageRowStrideWords?: number;
  /** Words from one page to the next, at least the rows of a page. */
  pageStrideWords: number;
  /** First word of page 0 in `pages`, or of the part of its rows that is written. Default 0. */
  pagesBaseWords?: number;
  /** How pages store numbers, default `f32`. For `int8` see `recordQuantisedPageWrite`. */
  storage?: 'f32' | 'f16';
}

/** How many numbers a lane moves at a time, and how it stores them. */
const UNITS = {
  'f32 by f32': 'alias Unit = f32;\nalias Stored = f32;\nfn storedOf(unit: Unit) -> Stored { return unit; }\n',
  'f32 by vec4f': 'alias Unit = vec4f;\nalias Stored = vec4f;\nfn storedOf(unit: Unit) -> Stored { return unit; }\n',
  'f16 by vec2f':
    'alias Unit = vec2f;\nalias Stored = u32;\n' +
    'fn storedOf(unit: Unit) -> Stored { return pack2x16float(clamp(unit, vec2f(-65504.0), vec2f(65504.0))); }\n',
  'f16 by vec4f':
    'alias Unit = vec4f;\nalias Stored = vec2u;\n' +
    'fn storedOf(unit: Unit) -> Stored {\n  let finite = clamp(unit, vec4f(-65504.0), vec4f(65504.0));\n' +
    '  return vec2u(pack2x16float(finite.xy), pack2x16float(finite.zw));\n}\n',
} as const;

function pageWriteKernel(unit: keyof typeof UNITS) {
  return defineKernel({
    label: `page-write ${unit}`,
    code: UNITS[unit] + code,
    bindings: {
      rows: 'read-only-storage',
      tokens: 'read-only-storage',
      pageTable: 'read-only-storage',
      pages: 'storage',
      params: 'uniform',
    },
    constants: {},
    workgroupSize: () => [64, 1, 1],
    workgroups: ({ numTokens }: PageWriteShape) => numTokens,
  });
}

/**
 * Writes one row of each token into the page that holds its position: how new keys and values reach their pages, one dispatch
 * for each buffer. Rows are f32, pages are f32 or f16 (rounded up or down as the device does, and held to ±65504).
 *
 * Position p of request r goes to page `pageTable[r, floor(p / tokensPerPage)]`, row `p mod tokensPerPage`. The row is dropped
 * when that page index is -1, when r or p is negative, or when the table has no such entry.
 *
 * - `rows` `[numTokens, rowStrideWords] f32`, read-only-storage.
 * - `tokens` `[numTokens, 2] i32` of request and position, read-only-storage. No (request, position) twice.
 * - `pageTable` `[numRequests, tableStride] i32` of page indices in `pages`, read-only-storage. The binding must end where the
 *   table does.
 * - `pages` `[numPages, pageStrideWords]` words, storage (read_write); a page holds `[tokensPerPage, pageRowStrideWords]` at its start.
 * - `params` uniform, the shape.
 * - Workgroup 64 × 1 × 1; dispatch `numTokens`, folded over x and y.
 * - Two variants for each storage: by vec4f when all words of the shape are multiples of four numbers, else by f32 (f16: by two).
 *   None needs a feature, a limit above the defaults (but `maxStorageBufferBindingSize` of the pool), or workgroup memory.
 *
 * @see page-write.reference.ts
 */
export const pageWriteKernels = {
  f32: pageWriteKernel('f32 by f32'),
  vec4f: pageWriteKernel('f32 by vec4f'),
  f16: pageWriteKernel('f16 by vec2f'),
  f16vec4: pageWriteKernel('f16 by vec4f'),
} as const;

export interface PageWriteOptions {
  shape: PageWriteShape;
  rows: Binding;
  tokens: Binding;
  pageTable: Binding;
  pages: Binding;
}

/**
 * Records the write of `numTokens` rows: one dispatch.
 * @throws {KernelError} `kernel-dispatch` when rows or pages would overlap their neighbours, `kernel-layout` when rows of f16 begin
 *   or end inside a word
 */
export function recordPageWrite(step: ComputeStep, options: PageWriteOptions): void {
  const { shape, ...buffers } = options;
  const { numTokens, tokensPerPage, tableStride, rowWords, pageStrideWords, storage = 'f32' } = shape;
  const { rowStrideWords = rowWords, rowsBaseWords = 0, pagesBaseWords = 0 } = shape;
  const numbersPerWord = NUMBERS_PER_WORD[storage];
  const storedWords = rowWords / numbersPerWord;
  const { pageRowStrideWords = storedWords } = shape;
  const rowPlaces = [rowWords, rowStrideWords, rowsBaseWords];
  const pagePlaces = [pageRowStrideWords, pageStrideWords, pagesBaseWords];
  const wide = [...rowPlaces, ...pagePlaces.map((words) => words * numbersPerWord)].every((numbers) => numbers % 4 === 0);
  const kernel = pageWriteKernels[storage === 'f16' ? (wide ? 'f16vec4' : 'f16') : wide ? 'vec4f' : 'f32'];
  if (rowPlaces.some((numbers) => numbers % numbersPerWord !== 0)) {
    const message = `rows of ${rowWords} numbers, ${rowStrideWords} apart and from ${rowsBaseWords} on, begin or end inside a word of f16. Make all of them even.`;
    throw layoutError(kernel.label, message);
  }
  const pageWords = (tokensPerPage - 1) * pageRowStrideWords + storedWords;
  if (!(tokensPerPage >= 1) || rowStrideWords < rowWords || pageRowStrideWords < storedWords || pageStrideWords < pageWords) {
    throw new KernelError(
      'kernel-dispatch',
      kernel.label,
      `rows of ${rowWords} words, ${rowStrideWords} apart, and ${tokensPerPage} of them in pages ${pageStrideWords} words apart would overlap.`,
    );
  }
  const unitWords = wide ? 4 : numbersPerWord;
  const storedUnitWords = unitWords / numbersPerWord;
  const params = step.upload(
    packParams(PARAMS, {
      numTokens,
      tokensPerPage,
      tableStride,
      rowUnits: rowWords / unitWords,
      rowStride: rowStrideWords / unitWords,
      rowsBase: rowsBaseWords / unitWords,
      pageRowStride: pageRowStrideWords / storedUnitWords,
      pageStride: pageStrideWords / storedUnitWords,
      pagesBase: pagesBaseWords / storedUnitWords,
    }),
  );
  step.dispatch(kernel, { shape, bindings: { ...buffers, params } });
}

const PARAMS = {
  numTokens: 'u32',
  tokensPerPage: 'u32',
  tableStride: 'u32',
  rowUnits: 'u32',
  rowStride: 'u32',
  rowsBase: 'u32',
  pageRowStride: 'u32',
  pageStride: 'u32',
  pagesBase: 'u32',
} as const;
