import { KernelError } from '../../errors/kernel-error.ts';
import { bindingWords } from '../../kernel/binding-words.ts';
import type { Binding } from '../../kernel/compute-step.ts';
import { type ParamLayout, packParams } from '../../kernel/params.ts';

/**
 * How numbers of keys and values are stored. `int8` counts in units of a scale, which lies in a buffer of its own and holds for
 * one page, of one head or of several: see `KvScales`.
 */
export type KvStorage = 'f32' | 'f16' | 'int8';

/** Stored numbers in a 32-bit word. */
export const NUMBERS_PER_WORD: Readonly<Record<KvStorage, number>> = { f32: 1, f16: 2, int8: 4 };

/**
 * Where a buffer's pages lie, for any number of requests. Nothing is assumed about neighbouring indices, so a table of scratch
 * pages may send one block of a layer into several slots, and requests may share pages.
 */
export interface PagePlaces {
  /** Bound for reading, so several of them may lie in one buffer. */
  pool: Binding;
  /**
   * `[numRequests, tableStride] i32`: kernel page indices. A negative one (`BAD_PAGE_INDEX`) is never followed; tokens of
   * such a page, and tokens beyond the table, count as unseen. Best in the upload of the step, as all the tables of a call: what
   * lies elsewhere is first copied to the others.
   */
  table: Binding;
  /** Entries of the table for one request, >= 1. */
  tableStride: number;
  /** Tokens that one page of this buffer holds: tokensPerBlock, or its override. >= 1 */
  tokensPerPage: number;
  /** 32-bit words from one page to the next. At least the rows of a page. */
  pageStrideWords: number;
  /** First word of page 0. Default 0. */
  baseWords?: number;
}

/**
 * Where keys, or values, lie. Token t of request r has its row `[numKvHeads, headDim]` (`valueDim` for values) at word
 * `baseWords + table[r, floor(t / tokensPerPage)] * pageStrideWords + (t mod tokensPerPage) * rowStrideWords` of the pool.
 *
 * Keys and values have one each, and may differ in everything: group, page size, pool. Places and distances are multiples of the
 * words of four stored numbers: 4 for f32, 2 for f16.
 */
export interface KvPages extends PagePlaces {
  /** From one row of a page to the next. At least a row; default: a row. */
  rowStrideWords?: number;
  /** For `int8`, and only for it. */
  scales?: KvScales;
}

/**
 * Scales of the pages of keys, or of values: a buffer of its own. A stored number n of head h means `n * scale`. A page of scales
 * holds `[tokensPerPage / tokensPerPage of the keys, numKvHeads / headsPerScale] f32`.
 */
export interface KvScales extends PagePlaces {
  /** Key-value heads that share a scale: 1, the default, or `numKvHeads`, or another divisor of it. */
  headsPerScale?: number;
}

/** What the kernels read of a buffer's pages: `Pages` of page-places.wgsl, but for the place of the table. */
export interface PageGeometry {
  tableStride: number;
  tokensPerPage: number;
  base: number;
  pageStride: number;
  rowStride: number;
  tokensPerRow: number;
  headsPerScale: number;
}

const layout = {
  tableAt: 'u32',
  tableStride: 'u32',
  tokensPerPage: 'u32',
  base: 'u32',
  pageStride: 'u32',
  rowStride: 'u32',
  tokensPerRow: 'u32',
  headsPerScale: 'u32',
} as const satisfies ParamLayout;

const NO_PAGES: PageGeometry = {
  tableStride: 0,
  tokensPerPage: 1,
  base: 0,
  pageStride: 0,
  rowStride: 0,
  tokensPerRow: 1,
  headsPerScale: 1,
};

/** `Pages` of page-places.wgsl. `tableAt`: first entry of the table in the binding of all tables. */
export function pageParams(geometry: PageGeometry = NO_PAGES, tableAt = 0): Uint8Array {
  return packParams(layout, { tableAt, ...geometry });
}

/**
 * @param label       the kernel
 * @param name        of the operand
 * @param rowWords    words of a token's row
 * @param wordsPerVec words of four stored numbers
 * @throws {KernelError} `kernel-layout` with the reason, when the kernels cannot read such pages
 */
export function kvGeometry(
  label: string,
  name: string,
  pages: KvPages,
  rowWords: number,
  wordsPerVec: number,
  numRequests: number,
): PageGeometry {
  const { tokensPerPage, rowStrideWords = rowWords } = pages;
  requirePlaces(label, name, pages, wordsPerVec, numRequests);
  requireVecs(label, `${name}.rowStrideWords`, rowStrideWords, wordsPerVec);
  if (rowStrideWords < rowWords) {
    throw layoutError(label, `${name}.rowStrideWords is ${rowStrideWords}, but a row has ${rowWords} words: rows would overlap.`);
  }
  requirePageWords(label, name, pages, (tokensPerPage - 1) * rowStrideWords + rowWords, `${tokensPerPage} tokens`);
  return geometryOf(pages, rowStrideWords, 1, 1);
}

/** @throws {KernelError} `kernel-layout` when the scales do not fit the pages of the keys or values that they are of */
export function scaleGeometry(label: string, name: string, of: KvPages, numKvHeads: number, numRequests: number): PageGeometry {
  const { scales } = of;
  if (!scales) {
    throw layoutError(label, `${name}.scales is missing: numbers in int8 mean nothing without the scales of their pages.`);
  }
  const { tokensPerPage, headsPerScale = 1 } = scales;
  requirePlaces(label, `${name}.scales`, scales, 1, numRequests);
  requireCount(label, `${name}.scales.headsPerScale`, headsPerScale);
  if (numKvHeads % headsPerScale !== 0) {
    throw layoutError(label, `${name}.scales.headsPerScale ${headsPerScale} does not divide the ${numKvHeads} key-value heads.`);
  }
  if (tokensPerPage % of.tokensPerPage !== 0) {
    throw layoutError(
      label,
      `a page of ${name}.scales is for ${tokensPerPage} tokens, which are no whole pages of ${of.tokensPerPage}. Give the scales ` +
        'the tokens per page of their buffer, or a multiple of them.',
    );
  }
  const rowStride = numKvHeads / headsPerScale;
  const pageWords = (tokensPerPage / of.tokensPerPage) * rowStride;
  requirePageWords(label, `${name}.scales`, scales, pageWords, `scales of ${tokensPerPage} tokens`);
  return geometryOf(scales, rowStride, of.tokensPerPage, headsPerScale);
}

function geometryOf(
  { tableStride, tokensPerPage, baseWords = 0, pageStrideWords }: PagePlaces,
  rowStride: number,
  tokensPerRow: number,
  headsPerScale: number,
): PageGeometry {
  return { tableStride, tokensPerPage, base: baseWords, pageStride: pageStrideWords, rowStride, tokensPerRow, headsPerScale };
}

function requirePlaces(label: string, name: string, places: PagePlaces, wordsPerVec: number, numRequests: number): void {
  const { table, tableStride, tokensPerPage, pageStrideWords, baseWords = 0 } = places;
  requireCount(label, `${name}.tableStride`, tableStride);
  requireCount(label, `${name}.tokensPerPage`, tokensPerPage);
  requireVecs(label, `${name}.pageStrideWords`, pageStrideWords, wordsPerVec);
  requireVecs(label, `${name}.baseWords`, baseWords, wordsPerVec);
  requireWords(label, `${name}.table`, table, numRequests * tableStride);
}

function requirePageWords(label: string, name: string, places: PagePlaces, pageWords: number, content: string): void {
  const { pool, pageStrideWords, baseWords = 0 } = places;
  if (pageStrideWords < pageWords) {
    throw layoutError(
      label,
      `${name}.pageStrideWords is ${pageStrideWords}, but a page of ${content} has ${pageWords} words: pages would overlap.`,
    );
  }
  requireWords(label, `${name}.pool`, pool, baseWords + pageWords);
}

/** @throws {KernelError} `kernel-layout` when a place or distance cannot be read four numbers at a time */
export function requireVecs(label: string, name: string, words: number, wordsPerVec: number): void {
  if (!(Number.isInteger(words) && words >= 0 && words < 2 ** 31)) {
    throw layoutError(label, `${name} is ${words}, not an integer from 0 on.`);
  }
  if (words % wordsPerVec === 0) return;
  throw layoutError(
    label,
    `${name} is ${words}, but the kernels read four numbers at a time. Lay rows and pages out in multiples of ${wordsPerVec} words.`,
  );
}

function requireCount(label: string, name: string, value: number): void {
  if (Number.isInteger(value) && value >= 1 && value < 2 ** 31) return;
  throw layoutError(label, `${name} is ${value}, not an integer from 1 on.`);
}

function requireWords(label: string, name: string, binding: Binding, needed: number): void {
  const bound = bindingWords(binding);
  if (needed <= bound) return;
  throw layoutError(label, `${name} reaches to word ${needed}, but ${bound} are bound. Bind a larger range.`);
}

/** Pages lie in a way that the kernels would misread. */
export function layoutError(label: string, message: string): KernelError {
  return new KernelError('kernel-layout', label, message);
}
