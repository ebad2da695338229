import { bindingKinds, bindingText } from '../../kernel/binding-text.ts';
import { requireBindingWords } from '../../kernel/binding-words.ts';
import type { Binding, ComputeStep } from '../../kernel/compute-step.ts';
import { defineKernel } from '../../kernel/kernel.ts';
import { packParams } from '../../kernel/params.ts';
import { StepData } from '../../kernel/step-data.ts';
import { type KvPages, kvGeometry, layoutError, NUMBERS_PER_WORD, pageParams, scaleGeometry } from '../kv-pages/kv-pages.ts';
import pagePlaces from '../kv-pages/page-places.wgsl';
import code from './quantised-page-write.wgsl';

const LABEL = 'page-write int8';

const bindings = {
  params: ['uniform', 'Params'],
  rows: ['read-only-storage', 'array<vec4f>'],
  queryStart: ['read-only-storage', 'array<u32>'],
  contextLength: ['read-only-storage', 'array<u32>'],
  pageTable: ['read-only-storage', 'array<i32>'],
  scaleTable: ['read-only-storage', 'array<i32>'],
  pages: ['storage', 'array<u32>'],
  scales: ['storage', 'array<f32>'],
} as const;

export interface QuantisedPageWriteDispatch {
  numTokens: number;
  numRequests: number;
  tokensPerPage: number;
  numScaleHeads: number;
}

/**
 * Quantises rows of new tokens into pages of int8, and their scales into theirs.
 *
 * A number x is stored as `round(x / scale)`, from -127 to 127. The scale of a page is the largest magnitude in it over 127; when
 * a later row has a larger one, the page's older rows are rounded again, to the larger scale. The first row of a page begins a
 * new scale. What lies in a page behind the rows written last is not kept up.
 *
 * - `rows` `[numTokens, rowStrideWords] f32`, read-only-storage; `queryStart` `[numRequests + 1] u32`, `contextLength`
 *   `[numRequests] u32`, read-only-storage, as for prefill: the rows of a request are its last tokens.
 * - `pageTable`, `scaleTable` `[numRequests, tableStride] i32`, read-only-storage; `pages`, `scales`, storage (read_write): see
 *   `KvPages`. A row whose page or page of scales is missing is dropped.
 * - `params` uniform, `Params` of quantised-page-write.wgsl.
 * - Workgroup 64 × 1 × 1; dispatch `floor(numTokens / tokensPerPage) + 2 * numRequests` × `numKvHeads / headsPerScale`, of which
 *   some find no row and return. Default limits: 7 storage buffers, 256 bytes of workgroup memory.
 *
 * @see quantised-page-write.reference.ts
 */
export const quantisedPageWriteKernel = defineKernel({
  label: LABEL,
  code: [bindingText(bindings), pagePlaces, code].join('\n'),
  bindings: bindingKinds(bindings),
  constants: {},
  workgroupSize: () => [64, 1, 1],
  workgroups: ({ numTokens, numRequests, tokensPerPage, numScaleHeads }: QuantisedPageWriteDispatch) =>
    numTokens === 0 ? 0 : [Math.floor(numTokens / tokensPerPage) + 2 * numRequests, numScaleHeads, 1],
});

export interface QuantisedPageWriteOptions {
  /** Where the rows go: pages of int8 with their scales. No page of two requests that both write to it. */
  target: KvPages;
  numKvHeads: number;
  /** Numbers of one head, a multiple of 4. */
  headDim: number;
  /** f32 */
  rows: Binding;
  /** Words from one row of `rows` to the next. A multiple of 4, at least a row; default: a row. */
  rowStrideWords?: number;
  /** First word of the first row. A multiple of 4, default 0. */
  rowsBaseWords?: number;
  numTokens: number;
  numRequests: number;
  /** `[numRequests + 1] u32`: first row of each request, and `numTokens`. Never falls. */
  queryStart: Binding;
  /** `[numRequests] u32`: tokens of each request, those of this call included. */
  contextLength: Binding;
}

/**
 * Records the write of `numTokens` rows: one dispatch, none without tokens.
 * @throws {KernelError} `kernel-layout` when rows or pages lie in a way that the kernel would miswrite, `kernel-dispatch` when a binding is
 *   too short; nothing was added then
 */
export function recordQuantisedPageWrite(step: ComputeStep, options: QuantisedPageWriteOptions): void {
  const { target, numKvHeads, headDim, rows, numTokens, numRequests, queryStart, contextLength } = options;
  const rowNumbers = numKvHeads * headDim;
  const { rowStrideWords = rowNumbers, rowsBaseWords = 0 } = options;
  if ([headDim, rowStrideWords, rowsBaseWords].some((words) => words % 4 !== 0) || rowStrideWords < rowNumbers) {
    const message = `heads of ${headDim} numbers, in rows ${rowStrideWords} words apart and from word ${rowsBaseWords} on, cannot be read four numbers at a time. Make all of them multiples of 4, and rows not overlap.`;
    throw layoutError(LABEL, message);
  }
  const pages = kvGeometry(LABEL, 'target', target, rowNumbers / NUMBERS_PER_WORD.int8, 1, numRequests);
  const scales = scaleGeometry(LABEL, 'target', target, numKvHeads, numRequests);
  const { table: scaleTable, pool: scalePool } = target.scales as Required<KvPages>['scales'];
  if (bufferOf(target.pool) === bufferOf(scalePool)) {
    throw layoutError(LABEL, 'pages and their scales lie in one buffer, and both are written. Keep them in two.');
  }
  requireBindingWords(LABEL, 'queryStart', queryStart, numRequests + 1);
  requireBindingWords(LABEL, 'contextLength', contextLength, numRequests);
  if (numTokens === 0) return;
  requireBindingWords(LABEL, 'rows', rows, rowsBaseWords + (numTokens - 1) * rowStrideWords + rowNumbers);
  const scalars = packParams(PARAMS, {
    numRequests,
    rowStride: rowStrideWords / 4,
    rowsBase: rowsBaseWords / 4,
    groupVecs: (scales.headsPerScale * headDim) / 4,
  });
  const params = Uint8Array.of(...pageParams(pages), ...pageParams(scales), ...scalars);
  step.dispatch(quantisedPageWriteKernel, {
    shape: { numTokens, numRequests, tokensPerPage: target.tokensPerPage, numScaleHeads: numKvHeads / scales.headsPerScale },
    bindings: {
      params: step.upload(params),
      rows,
      queryStart,
      contextLength,
      pageTable: target.table,
      scaleTable,
      pages: target.pool,
      scales: scalePool,
    },
  });
}

const PARAMS = { numRequests: 'u32', rowStride: 'u32', rowsBase: 'u32', groupVecs: 'u32' } as const;

function bufferOf(binding: Binding): GPUBuffer | undefined {
  if (binding instanceof StepData) return undefined;
  return 'buffer' in binding ? binding.buffer : binding;
}
