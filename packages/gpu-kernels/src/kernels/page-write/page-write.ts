import { KernelError } from '../../errors/kernel-error.ts';
import type { Binding, ComputeStep } from '../../kernel/compute-step.ts';
import { defineKernel } from '../../kernel/kernel.ts';
import { packParams } from '../../kernel/params.ts';
import code from './page-write.wgsl';

/** Where the rows of each token come from and go to. All lengths in 32-bit words. */
export interface PageWriteShape {
  numTokens: number;
  /** Tokens that one page of this buffer holds: tokensPerBlock, or its override. */
  tokensPerPage: number;
  /** Entries of the page table for one request. */
  tableStride: number;
  /** Words of one row: what one token has in this buffer. */
  rowWords: number;
  /** Words from one row of `rows` to the next, >= rowWords. Default rowWords. */
  rowStrideWords?: number;
  /** First word of the first row in `rows`: 0, or the place of the keys in a row of queries, keys and values. Default 0. */
  rowsBaseWords?: number;
  /** Words from one page to the next, >= tokensPerPage * rowWords. */
  pageStrideWords: number;
  /** First word of page 0 in `pages`. Default 0. */
  pagesBaseWords?: number;
}

function pageWriteKernel(unit: 'f32' | 'vec4f') {
  return defineKernel({
    label: `page-write f32 by ${unit}`,
    code: `alias Unit = ${unit};\n${code}`,
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
 * for each buffer. Storage and rows are f32.
 *
 * Position p of request r goes to page `pageTable[r, floor(p / tokensPerPage)]`, row `p mod tokensPerPage`. The row is dropped
 * when that page index is -1, when r or p is negative, or when the table has no such entry.
 *
 * - `rows` `[numTokens, rowStrideWords] f32`, read-only-storage.
 * - `tokens` `[numTokens, 2] i32` of request and position, read-only-storage. No (request, position) twice.
 * - `pageTable` `[numRequests, tableStride] i32` of page indices in `pages`, read-only-storage. The binding must end where the
 *   table does.
 * - `pages` `[numPages, pageStrideWords] f32`, storage (read_write); a page holds `[tokensPerPage, rowWords] f32` at its start.
 * - `params` uniform, the shape.
 * - Workgroup 64 × 1 × 1; dispatch `numTokens`, folded over x and y.
 * - Two variants: by vec4f when all words of the shape are multiples of 4, else by f32. Neither needs a feature, a limit above
 *   the defaults (but `maxStorageBufferBindingSize` of the pool), or workgroup memory.
 *
 * @see page-write.reference.ts
 */
export const pageWriteKernels = { f32: pageWriteKernel('f32'), vec4f: pageWriteKernel('vec4f') } as const;

export interface PageWriteOptions {
  shape: PageWriteShape;
  rows: Binding;
  tokens: Binding;
  pageTable: Binding;
  pages: Binding;
}

/**
 * Records the write of `numTokens` rows: one dispatch.
 * @throws {KernelError} `kernel-dispatch` when rows or pages would overlap their neighbours
 */
export function recordPageWrite(step: ComputeStep, options: PageWriteOptions): void {
  const { shape, ...buffers } = options;
  const { numTokens, tokensPerPage, tableStride, rowWords, pageStrideWords } = shape;
  const { rowStrideWords = rowWords, rowsBaseWords = 0, pagesBaseWords = 0 } = shape;
  const wide = [rowWords, rowStrideWords, rowsBaseWords, pageStrideWords, pagesBaseWords].every((words) => words % 4 === 0);
  const kernel = wide ? pageWriteKernels.vec4f : pageWriteKernels.f32;
  if (!(tokensPerPage >= 1) || rowStrideWords < rowWords || pageStrideWords < tokensPerPage * rowWords) {
    throw new KernelError(
      'kernel-dispatch',
      kernel.label,
      `rows of ${rowWords} words, ${rowStrideWords} apart, and ${tokensPerPage} of them in pages ${pageStrideWords} words apart would overlap.`,
    );
  }
  const unitWords = wide ? 4 : 1;
  const params = step.upload(
    packParams(PARAMS, {
      numTokens,
      tokensPerPage,
      tableStride,
      rowUnits: rowWords / unitWords,
      rowStride: rowStrideWords / unitWords,
      rowsBase: rowsBaseWords / unitWords,
      pageStride: pageStrideWords / unitWords,
      pagesBase: pagesBaseWords / unitWords,
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
  pageStride: 'u32',
  pagesBase: 'u32',
} as const;
