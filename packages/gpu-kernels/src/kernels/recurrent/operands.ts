import { KernelError } from '../../errors/kernel-error.ts';
import { bindingWords, requireBindingWords } from '../../kernel/binding-words.ts';
import type { Binding } from '../../kernel/compute-step.ts';
import { numbersPerWord, type StorageDtype } from '../../kernel/storage-dtype.ts';
import type { SnapshotTable } from './snapshots.ts';
import type { Words } from './tables.ts';

/** Rows of 32-bit words, one for each token, anywhere in a buffer: row t begins at word `offsetWords + t * strideWords`. */
export interface TokenRows {
  buffer: Binding;
  /** Words from the start of the binding to the first row. */
  offsetWords: number;
  /** Words from one row to the next, at least the length of a row. */
  strideWords: number;
}

/** Pages of one pool. Page index i begins at word `baseWords + i * strideWords` of the pool. */
export interface PagePool {
  /** Bound for reading and writing. */
  pool: Binding;
  baseWords: number;
  strideWords: number;
  /** How the numbers of a page are stored, default f32. Kernels compute in f32 with either. */
  dtype?: StorageDtype;
}

/** One page of a pool for each request. */
export interface RequestPages extends PagePool {
  /**
   * `[numRequests] i32`: kernel page index of each request. A request whose index is negative (`BAD_PAGE_INDEX`) begins from
   * zeros, and so does one whose index lies beyond the pool: WebGPU would clamp the access to somebody's page.
   */
  pageIndex: Words;
  /**
   * `[numRequests] i32`: the page that takes what each request leaves, default `pageIndex`; without a page nothing is kept.
   * With it, requests may begin from one page that they share and that stays as it is. No page that is written in a call is
   * another request's in that call, for reading or writing.
   */
  targetIndex?: Words;
  /** More pages of the pool, for what the requests have after some of their tokens. */
  snapshots?: SnapshotTable;
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

/** @param pageWords of one page, as its dtype has them */
export function requirePool(label: string, name: string, pages: PagePool, pageWords: number): void {
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
}

export function requirePages(label: string, name: string, pages: RequestPages, numRequests: number, pageWords: number): void {
  requirePool(label, name, pages, pageWords);
  requireWords(label, `${name}.pageIndex`, pages.pageIndex, numRequests);
  if (pages.targetIndex) requireWords(label, `${name}.targetIndex`, pages.targetIndex, numRequests);
  if (!pages.snapshots) return;
  if (pages.snapshots.numRequests !== numRequests) {
    throw new KernelError(
      'kernel-dispatch',
      label,
      `${name}.snapshots are of ${pages.snapshots.numRequests} requests, the call has ${numRequests}. Pack them for this call.`,
    );
  }
  requireWords(label, `${name}.snapshots`, pages.snapshots.words, numRequests + 1 + 2 * pages.snapshots.numSnapshots);
}

/** Whole pages that the bound range holds. */
export function numPagesOf(pages: PagePool, pageWords: number): number {
  const words = bindingWords(pages.pool) - pages.baseWords;
  return words < pageWords ? 0 : Math.floor((words - pageWords) / pages.strideWords) + 1;
}

/**
 * Words of so many stored numbers.
 * @throws {KernelError} `kernel-layout` when they end inside a word that they would share with others
 */
export function wordsOf(label: string, name: string, count: number, dtype: StorageDtype): number {
  const words = count / numbersPerWord(dtype);
  if (Number.isInteger(words)) return words;
  throw new KernelError('kernel-layout', label, `${name} is ${count}: in ${dtype} it ends in half a word. Store f32.`);
}

function requireWord(label: string, name: string, value: number): void {
  if (Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff) return;
  throw new KernelError('kernel-dispatch', label, `${name} is ${value}, not a number of words.`);
}
