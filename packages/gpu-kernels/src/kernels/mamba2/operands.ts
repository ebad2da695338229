import { KernelError } from '../../errors/kernel-error.ts';
import { bindingWords, requireBindingWords } from '../../kernel/binding-words.ts';
import type { Binding } from '../../kernel/compute-step.ts';

/** Rows of 32-bit words, one for each token, anywhere in a buffer: row t begins at word `offsetWords + t * strideWords`. */
export interface TokenRows {
  buffer: Binding;
  /** Words from the start of the binding to the first row. */
  offsetWords: number;
  /** Words from one row to the next, at least the length of a row. */
  strideWords: number;
}

/** A run of 32-bit words in a buffer: weights, or a table of indices. */
export interface Words {
  buffer: Binding;
  /** Words from the start of the binding, default 0. */
  offsetWords?: number;
}

/** One page of a pool for each request. Page index i begins at word `baseWords + i * strideWords` of the pool. */
export interface RequestPages {
  /** Bound for reading and writing. */
  pool: Binding;
  baseWords: number;
  strideWords: number;
  /**
   * `[numRequests] i32`: kernel page index of each request. No two requests of a call share a page. A request whose index is
   * negative (`BAD_PAGE_INDEX`) begins from zeros and keeps nothing, and so does one whose index lies beyond the pool: WebGPU
   * would clamp the access to somebody's page.
   */
  pageIndex: Words;
}

export function requireRows(label: string, name: string, rows: TokenRows, numTokens: number, rowWords: number): void {
  requireWord(label, `${name}.offsetWords`, rows.offsetWords);
  requireWord(label, `${name}.strideWords`, rows.strideWords);
  if (rows.strideWords < rowWords) {
    throw new KernelError(
      'kernel-dispatch',
      label,
      `${name}.strideWords is ${rows.strideWords}, but a row has ${rowWords} words.`,
    );
  }
  const needed = numTokens === 0 ? 0 : rows.offsetWords + (numTokens - 1) * rows.strideWords + rowWords;
  requireBindingWords(label, name, rows.buffer, needed);
}

export function requireWords(label: string, name: string, words: Words, length: number): void {
  requireWord(label, `${name}.offsetWords`, words.offsetWords ?? 0);
  requireBindingWords(label, name, words.buffer, (words.offsetWords ?? 0) + length);
}

export function requirePages(label: string, name: string, pages: RequestPages, numRequests: number, pageWords: number): void {
  requireWord(label, `${name}.baseWords`, pages.baseWords);
  requireWord(label, `${name}.strideWords`, pages.strideWords);
  if (pages.strideWords < pageWords) {
    throw new KernelError(
      'kernel-dispatch',
      label,
      `${name}.strideWords is ${pages.strideWords}, but a page has ${pageWords} words.`,
    );
  }
  requireBindingWords(label, `${name}.pool`, pages.pool, pages.baseWords);
  requireWords(label, `${name}.pageIndex`, pages.pageIndex, numRequests);
}

/** Whole pages that the bound range holds. */
export function numPagesOf(pages: RequestPages, pageWords: number): number {
  const words = bindingWords(pages.pool) - pages.baseWords;
  return words < pageWords ? 0 : Math.floor((words - pageWords) / pages.strideWords) + 1;
}

function requireWord(label: string, name: string, value: number): void {
  if (Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff) return;
  throw new KernelError('kernel-dispatch', label, `${name} is ${value}, not a number of words.`);
}
