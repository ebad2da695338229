import { bindingWords } from '../../kernel/binding-words.ts';
import type { Binding } from '../../kernel/compute-step.ts';
import { layoutError } from '../kv-pages/kv-pages.ts';
import { LABEL, requireInteger } from './attention-shape.ts';

/**
 * Which blocks each request reads, of those that it could see: lists of block ordinals, in pages of a buffer of their own, which
 * belongs to a group of its own.
 *
 * Request r has its list, `[maxBlocks] i32`, at word `baseWords + table[r] * pageStrideWords` of the pool; where `perHead`, it has
 * `[numKvHeads, maxBlocks]` there. Block b is the tokens from `b * tokensPerBlock` on. No block twice in a list, in any order;
 * a negative entry names none. A request without a page, or with an empty list, sees nothing.
 */
export interface SelectedBlocks {
  /** Bound for reading. */
  pool: Binding;
  /** `[numRequests] i32`: the page of each request's list, negative where there is none. */
  table: Binding;
  /** 32-bit words from one page to the next, at least those of a list. */
  pageStrideWords: number;
  /** First word of page 0. Default 0. */
  baseWords?: number;
  /** Entries of a list, >= 1. */
  maxBlocks: number;
  /** Tokens of a block that is selected; no need to be those of a page. >= 1 */
  tokensPerBlock: number;
  /** Each key-value head has a list. Default false. */
  perHead?: boolean;
}

/** What the kernels read of the lists: the fields of `Params` in WGSL, but for the place of the table. */
export interface SelectionGeometry {
  selectionBase: number;
  selectionPageStride: number;
  selectionHeadStride: number;
  maxBlocks: number;
  tokensPerBlock: number;
}

export const NO_SELECTION: SelectionGeometry = {
  selectionBase: 0,
  selectionPageStride: 0,
  selectionHeadStride: 0,
  maxBlocks: 0,
  tokensPerBlock: 1,
};

/** @throws {KernelError} `kernel-layout` or `kernel-dispatch` with the reason, when the kernels cannot read such lists */
export function selectionGeometry(selected: SelectedBlocks, numKvHeads: number, numRequests: number): SelectionGeometry {
  const { pool, table, pageStrideWords, baseWords = 0, maxBlocks, tokensPerBlock, perHead = false } = selected;
  requireInteger('selectedBlocks.maxBlocks', maxBlocks, 1);
  requireInteger('selectedBlocks.tokensPerBlock', tokensPerBlock, 1);
  requireInteger('selectedBlocks.maxBlocks * tokensPerBlock', maxBlocks * tokensPerBlock, 1);
  requireInteger('selectedBlocks.pageStrideWords', pageStrideWords, 0);
  requireInteger('selectedBlocks.baseWords', baseWords, 0);
  const listWords = maxBlocks * (perHead ? numKvHeads : 1);
  if (pageStrideWords < listWords) {
    throw layoutError(
      LABEL,
      `selectedBlocks.pageStrideWords is ${pageStrideWords}, but a list has ${listWords} words: lists would overlap.`,
    );
  }
  for (const [name, binding, words] of [
    ['table', table, numRequests],
    ['pool', pool, baseWords + listWords],
  ] as const) {
    const bound = bindingWords(binding);
    if (words > bound) throw layoutError(LABEL, `selectedBlocks.${name} reaches to word ${words}, but ${bound} are bound.`);
  }
  return {
    selectionBase: baseWords,
    selectionPageStride: pageStrideWords,
    selectionHeadStride: perHead ? maxBlocks : 0,
    maxBlocks,
    tokensPerBlock,
  };
}
