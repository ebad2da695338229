import { requireBindingWords } from '../../kernel/binding-words.ts';
import type { Binding } from '../../kernel/compute-step.ts';
import { attentionError, LABEL, requireInteger } from './attention-shape.ts';

/**
 * Where keys, or values, lie. Token t of request r has its row `[numKvHeads, headDim] f32` at word
 * `baseWords + table[r, floor(t / tokensPerPage)] * pageStrideWords + (t mod tokensPerPage) * numKvHeads * headDim` of the pool.
 *
 * Keys and values have one each, and may differ in everything: group, page size, pool. Nothing is assumed about neighbouring
 * indices, so a table of scratch pages may send one block of a layer into several slots, and requests may share pages.
 */
export interface KvPages {
  /** Bound for reading, so keys and values may lie in one buffer. */
  pool: Binding;
  /**
   * `[numRequests, tableStride] i32`: kernel page indices. A negative one (`BAD_PAGE_INDEX`) is never followed; tokens of
   * such a page, and tokens beyond the table, count as unseen.
   */
  table: Binding;
  /** Entries of the table for one request, >= 1. */
  tableStride: number;
  /** Tokens that one page of this buffer holds: tokensPerBlock, or its override. >= 1 */
  tokensPerPage: number;
  /** From one page to the next. A multiple of 4, at least the rows of a page. */
  pageStrideWords: number;
  /** First word of page 0. A multiple of 4, default 0. */
  baseWords?: number;
}

/** @throws {KernelError} `kernel-dispatch` with the reason, when the kernels cannot read such pages */
export function requireKvPages(name: string, pages: KvPages, rowWords: number, numRequests: number): void {
  const { pool, table, tableStride, tokensPerPage, pageStrideWords, baseWords = 0 } = pages;
  requireInteger(`${name}.tableStride`, tableStride, 1);
  requireInteger(`${name}.tokensPerPage`, tokensPerPage, 1);
  requireVecs(`${name}.pageStrideWords`, pageStrideWords);
  requireVecs(`${name}.baseWords`, baseWords);
  const pageWords = tokensPerPage * rowWords;
  if (pageStrideWords < pageWords) {
    throw attentionError(
      `${name}.pageStrideWords is ${pageStrideWords}, but a page of ${tokensPerPage} tokens has ${pageWords} words: pages would overlap.`,
    );
  }
  requireBound(`${name}.pool`, pool, baseWords + pageWords);
  requireBound(`${name}.table`, table, numRequests * tableStride);
}

/** @throws {KernelError} `kernel-dispatch` when a place or distance cannot be read four words at a time */
export function requireVecs(name: string, words: number): void {
  requireInteger(name, words, 0);
  if (words % 4 === 0) return;
  throw attentionError(
    `${name} is ${words}, but the kernels read four words at a time. Lay rows and pages out in multiples of 4 words.`,
  );
}

/** @throws {KernelError} `kernel-dispatch` when fewer than `words` words are bound */
export function requireBound(name: string, binding: Binding, words: number): void {
  requireBindingWords(LABEL, name, binding, words);
}
