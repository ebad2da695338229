import { requireBindingWords } from '../../kernel/binding-words.ts';
import type { ComputeContext } from '../../kernel/compute-context.ts';
import type { Binding, ComputeStep } from '../../kernel/compute-step.ts';
import { joinBindings } from '../../kernel/joined-binding.ts';
import type { Kernel } from '../../kernel/kernel.ts';
import {
  type KvPages,
  kvGeometry,
  layoutError,
  NUMBERS_PER_WORD,
  type PageGeometry,
  requireVecs,
  scaleGeometry,
} from '../kv-pages/kv-pages.ts';
import { type AttentionParams, attentionParams, type IndexArray, NO_WINDOW, type Paged } from './attention-params.ts';
import {
  type AttentionShape,
  attentionError,
  type FullAttentionShape,
  fullAttentionShape,
  LABEL,
  requireInteger,
} from './attention-shape.ts';
import { variantOf } from './attention-variant.ts';
import { type DecodeKernel, decodeKernel, decodeMergeKernel, decodePartitions, partialWords } from './decode-kernel.ts';
import { type PrefillKernel, prefillKernel, prefillTiling } from './prefill-kernel.ts';
import { NO_SELECTION, type SelectedBlocks, selectionGeometry } from './selected-blocks.ts';
import { GPU_THREADS, SOFTWARE_THREADS } from './thread-budget.ts';
import { Workspace } from './workspace.ts';

export { type AttentionShape, type FullAttentionShape, type LatentAttention, latentAttention } from './attention-shape.ts';
export type { SelectedBlocks } from './selected-blocks.ts';

/**
 * What prefill and decode read and write. A query at position i sees the key at j when `j <= i` and, under a window, also
 * `i - j < slidingWindowSize` or `j < numSinkTokens`; where blocks are selected, only in a selected one.
 */
interface AttentionOperands {
  keys: KvPages;
  /** Absent where the shape says that values lie in keys. */
  values?: KvPages;
  /** Queries f32, a row `[numQueryHeads, headDim]` for each. */
  queries: Binding;
  /** Words from one row of queries to the next: more than a row where keys and values lie between. A multiple of 4. Default: a row. */
  queriesStrideWords?: number;
  /** First word of the first row of queries. A multiple of 4, default 0. */
  queriesBaseWords?: number;
  /** `[numRequests] u32`: tokens of each request that have keys and values, those of this call included. */
  contextLength: Binding;
  /** `[numQueries, numQueryHeads, valueDim] f32`, written. Zeros for a query none of whose keys has a page. Not in a buffer that is read. */
  output: Binding;
  numRequests: number;
  /** Tokens, >= 1. Default: no window. */
  slidingWindowSize?: number;
  /** First tokens that stay visible in spite of the window. Default 0. */
  numSinkTokens?: number;
  /** `[numQueryHeads]`: scores of nothing, where the shape has learned sinks. Neither scaled nor capped. */
  sinkScores?: ArrayLike<number>;
  /** Where the shape selects blocks. */
  selectedBlocks?: SelectedBlocks;
}

export interface PrefillOperands extends AttentionOperands {
  /** Queries of all requests together. */
  numTokens: number;
  /** `[numRequests + 1] u32`: first query of each request, and `numTokens`. Never falls. The queries of a request are its last tokens. */
  queryStart: Binding;
}

export interface DecodeOperands extends AttentionOperands {
  /** At least the largest of `contextLength`. Fixes how many partitions are launched; a longer request comes out right, but slowly. */
  maxContextLength: number;
}

export interface PagedAttentionOptions {
  /**
   * How the work is cut. Default: `software` on a fallback adapter, else `gpu`. Both are right everywhere; results may differ in
   * the last bits.
   */
  tiling?: 'gpu' | 'software';
  /**
   * Features of the device that may be used: `shader-f16` to read f16, `subgroups` to add up without workgroup memory. Default: what
   * the device was requested with. The kernels are right without any.
   */
  features?: readonly GPUFeatureName[];
}

/** What is bound and read by one call, checked. */
interface Call {
  params: Omit<AttentionParams, 'indexPlaces'>;
  indexArrays: Partial<Record<IndexArray, Binding>>;
  bindings: Record<string, Binding>;
}

/**
 * Attention over paged keys and values for layers of one shape. Stored in f32, f16 or int8; computed in f32.
 *
 * Reads only pages with a visible token; nothing that lies elsewhere in a pool reaches a result, be it NaN. A result is the same
 * to the bit whatever the request is batched with, and `prefill` also however the prompt is cut into chunks. `prefill` and
 * `decode` agree up to rounding. Tables are read for each buffer alone: any layout does in which a page is whole.
 */
export class PagedAttention {
  readonly shape: Readonly<FullAttentionShape>;
  readonly #context: ComputeContext;
  readonly #queryWords: number;
  readonly #outputWords: number;
  readonly #prefill: PrefillKernel;
  readonly #decode: DecodeKernel;
  readonly #merge: DecodeKernel;
  readonly #partials: Workspace;
  readonly #indices: Workspace;

  /** @throws {KernelError} `kernel-dispatch` when the kernels do not serve the shape */
  constructor(context: ComputeContext, shape: AttentionShape, options: PagedAttentionOptions = {}) {
    this.shape = Object.freeze(fullAttentionShape(shape));
    this.#context = context;
    this.#queryWords = shape.numQueryHeads * shape.headDim;
    this.#outputWords = shape.numQueryHeads * this.shape.valueDim;
    const { adapterInfo, features } = context.device;
    const software = (options.tiling ?? (adapterInfo.isFallbackAdapter ? 'software' : 'gpu')) === 'software';
    const budget = software ? SOFTWARE_THREADS : GPU_THREADS;
    const variant = variantOf(this.shape, new Set(options.features ?? features), adapterInfo.subgroupMinSize);
    this.#prefill = known(prefillKernel(variant, prefillTiling(variant, budget)));
    this.#decode = known(decodeKernel(variant, budget));
    this.#merge = known(decodeMergeKernel(variant, budget));
    this.#partials = new Workspace(context, `${LABEL} partial results`);
    this.#indices = new Workspace(context, `${LABEL} tables`);
  }

  /** Compiles ahead of the first step. */
  async warmUp(): Promise<void> {
    await Promise.all([this.#prefill, this.#decode, this.#merge].map((kernel) => this.#context.warmUp(kernel)));
  }

  /**
   * Adds the attention of packed chunks: one dispatch, none without tokens.
   * @throws {KernelError} `kernel-layout` when the kernels cannot read pages that lie so, `kernel-dispatch` when another operand does
   *   not fit; nothing was added then
   */
  prefill(step: ComputeStep, operands: PrefillOperands): void {
    const { numTokens, numRequests, queryStart, output } = operands;
    requireInteger('numTokens', numTokens, 0);
    requireInteger('numRequests', numRequests, numTokens === 0 ? 0 : 1);
    const call = this.#call(operands, numTokens, 1);
    requireBound('queryStart', queryStart, numRequests + 1);
    if (numTokens === 0) return;
    call.indexArrays.queryStart = queryStart;
    step.dispatch(this.#prefill, {
      shape: { numTokens, numRequests, numKvHeads: this.shape.numKvHeads },
      bindings: { ...this.#bindings(step, call), output },
    });
  }

  /**
   * Adds the attention of one query a request: one dispatch, and a second one when a request may see more than 128 keys.
   * @throws {KernelError} as `prefill`
   */
  decode(step: ComputeStep, operands: DecodeOperands): void {
    const { numRequests, maxContextLength, slidingWindowSize = NO_WINDOW, numSinkTokens = 0, output } = operands;
    requireInteger('maxContextLength', maxContextLength, 0);
    const { selectedBlocks } = operands;
    const mostKeys = selectedBlocks
      ? selectedBlocks.maxBlocks * selectedBlocks.tokensPerBlock
      : Math.min(maxContextLength, slidingWindowSize + numSinkTokens);
    const numPartitions = decodePartitions(mostKeys);
    const call = this.#call(operands, numRequests, numPartitions);
    if (numRequests === 0) return;
    const { numQueryHeads, numKvHeads } = this.shape;
    const shape = { numRequests, numQueryHeads, numKvHeads, numPartitions };
    if (numPartitions === 1) {
      step.dispatch(this.#decode, { shape, bindings: { ...this.#bindings(step, call), result: output } });
      return;
    }
    const partials = this.#partials.get(numRequests * numQueryHeads * numPartitions * partialWords(this.shape));
    const bindings = this.#bindings(step, call);
    step.dispatch(this.#decode, { shape, bindings: { ...bindings, result: partials } });
    step.dispatch(this.#merge, { shape, bindings: { ...bindings, partials, output } });
  }

  /** Frees the workspace. Steps that name it must have been submitted. */
  destroy(): void {
    this.#partials.destroy();
    this.#indices.destroy();
  }

  #call(operands: AttentionOperands, numQueries: number, numPartitions: number): Call {
    const { numRequests, queries, contextLength, output, sinkScores = [] } = operands;
    const { queriesStrideWords = this.#queryWords, queriesBaseWords = 0 } = operands;
    const { slidingWindowSize = NO_WINDOW, numSinkTokens = 0 } = operands;
    const { learnedSinks, numQueryHeads } = this.shape;
    requireInteger('numRequests', numRequests, 0);
    requireInteger('slidingWindowSize', slidingWindowSize, 1);
    requireInteger('numSinkTokens', numSinkTokens, 0);
    requireVecs(LABEL, 'queriesStrideWords', queriesStrideWords, 4);
    requireVecs(LABEL, 'queriesBaseWords', queriesBaseWords, 4);
    if (sinkScores.length !== (learnedSinks ? numQueryHeads : 0)) {
      const wanted = learnedSinks ? `one for each of the ${numQueryHeads} query heads` : 'none: the shape has no learned sinks';
      throw attentionError(`sinkScores has ${sinkScores.length} scores, but there must be ${wanted}.`);
    }
    const call: Call = {
      params: {
        numRequests,
        queriesBaseWords,
        queriesStrideWords,
        slidingWindowSize,
        numSinkTokens,
        numPartitions,
        sinkScores,
        pages: {},
        selection: NO_SELECTION,
      },
      indexArrays: { contextLength },
      bindings: { queries },
    };
    this.#addPages(call, operands);
    this.#addSelection(call, operands);
    requireBound('contextLength', contextLength, numRequests);
    if (numQueries > 0) {
      requireBound('queries', queries, queriesBaseWords + (numQueries - 1) * queriesStrideWords + this.#queryWords);
      requireBound('output', output, numQueries * this.#outputWords);
    }
    return call;
  }

  #addPages(call: Call, { keys, values, numRequests }: AttentionOperands): void {
    const { valuesInKeys, headDim, valueDim } = this.shape;
    if (valuesInKeys === (values !== undefined)) {
      throw layoutError(
        LABEL,
        valuesInKeys ? 'values have pages, but the shape says that they lie in the keys.' : 'values have no pages.',
      );
    }
    const pages: Partial<Record<Paged, PageGeometry>> = {};
    const add = (name: 'key' | 'value', from: KvPages, dim: number) => {
      const { numKvHeads, storage } = this.shape;
      const wordsPerVec = 4 / NUMBERS_PER_WORD[storage];
      pages[name] = kvGeometry(LABEL, `${name}s`, from, (numKvHeads * dim * wordsPerVec) / 4, wordsPerVec, numRequests);
      call.indexArrays[`${name}Table`] = from.table;
      call.bindings[`${name}Pool`] = from.pool;
      if (storage === 'int8') {
        pages[`${name}Scale`] = scaleGeometry(LABEL, `${name}s`, from, numKvHeads, numRequests);
        call.indexArrays[`${name}ScaleTable`] = from.scales?.table;
        call.bindings[`${name}Scales`] = from.scales?.pool as Binding;
      } else if (from.scales) {
        throw layoutError(LABEL, `${name}s.scales is given, but ${storage} has no scales.`);
      }
    };
    add('key', keys, headDim);
    add('value', values ?? keys, values ? valueDim : headDim);
    call.params = { ...call.params, pages };
  }

  #addSelection(call: Call, { selectedBlocks, numRequests }: AttentionOperands): void {
    const { selectsBlocks, numKvHeads } = this.shape;
    if (selectsBlocks !== (selectedBlocks !== undefined)) {
      throw attentionError(
        selectsBlocks ? 'selectedBlocks is missing.' : 'selectedBlocks is given, but the shape says that none are selected.',
      );
    }
    if (!selectedBlocks) return;
    call.params = { ...call.params, selection: selectionGeometry(selectedBlocks, numKvHeads, numRequests) };
    call.indexArrays.selectionTable = selectedBlocks.table;
    call.bindings.selection = selectedBlocks.pool;
  }

  #bindings(step: ComputeStep, { params, indexArrays, bindings }: Call): Record<string, Binding> {
    const names = Object.keys(indexArrays) as IndexArray[];
    const arrays = names.map((name) => indexArrays[name] as Binding);
    const { maxStorageBufferBindingSize } = this.#context.device.limits;
    const { binding: indices, firstWords } = joinBindings(LABEL, step, arrays, maxStorageBufferBindingSize, (words) =>
      this.#indices.get(words),
    );
    const indexPlaces = Object.fromEntries(names.map((name, i) => [name, firstWords[i]]));
    return { ...bindings, indices, params: step.upload(attentionParams(this.shape, { ...params, indexPlaces })) };
  }
}

function requireBound(name: string, binding: Binding, words: number): void {
  requireBindingWords(LABEL, name, binding, words);
}

const kernels = new Map<string, Kernel<string, never, never>>();

/** The same kernel for the same text, so that what is compiled is shared by all layers and models of a device. */
function known<SomeKernel extends Kernel<string, never, never>>(kernel: SomeKernel): SomeKernel {
  const first = kernels.get(kernel.code);
  if (first) return first as SomeKernel;
  kernels.set(kernel.code, kernel);
  return kernel;
}
