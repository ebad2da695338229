import type { ComputeContext } from '../../kernel/compute-context.ts';
import type { Binding, ComputeStep } from '../../kernel/compute-step.ts';
import { BUFFER_USAGE } from '../../kernel/gpu-flags.ts';
import type { Kernel } from '../../kernel/kernel.ts';
import { type AttentionParams, attentionParams, NO_WINDOW } from './attention-params.ts';
import { type AttentionShape, attentionError, LABEL, requireAttentionShape, requireInteger } from './attention-shape.ts';
import {
  type DecodeKernel,
  type DecodeMergeKernel,
  decodeKernel,
  decodeMergeKernel,
  decodePartitions,
  partialWords,
} from './decode-kernel.ts';
import { type KvPages, requireBound, requireKvPages, requireVecs } from './kv-pages.ts';
import { type PrefillKernel, prefillKernel, prefillTiling } from './prefill-kernel.ts';
import { GPU_THREADS, SOFTWARE_THREADS } from './thread-budget.ts';

export type { AttentionShape } from './attention-shape.ts';
export type { KvPages } from './kv-pages.ts';

/** What prefill and decode read and write. A query at position i sees the key at j when `j <= i` and, under a window, also `i - j < slidingWindowSize` or `j < numSinkTokens`. */
interface AttentionOperands {
  keys: KvPages;
  values: KvPages;
  /** Queries f32, a row `[numQueryHeads, headDim]` for each. */
  queries: Binding;
  /** Words from one row of queries to the next: more than a row where keys and values lie between. A multiple of 4. Default: a row. */
  queriesStrideWords?: number;
  /** First word of the first row of queries. A multiple of 4, default 0. */
  queriesBaseWords?: number;
  /** `[numRequests] u32`: tokens of each request that have keys and values, those of this call included. */
  contextLength: Binding;
  /** `[numQueries, numQueryHeads, headDim] f32`, written. Zeros for a query none of whose keys has a page. Not in a buffer that is read. */
  output: Binding;
  numRequests: number;
  /** Tokens, >= 1. Default: no window. */
  slidingWindowSize?: number;
  /** First tokens that stay visible in spite of the window. Default 0. */
  numSinkTokens?: number;
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
}

/**
 * Attention over paged keys and values, f32, for layers of one shape.
 *
 * Reads only pages with a visible token; nothing that lies elsewhere in a pool reaches a result, be it NaN. A result is the same
 * to the bit whatever the request is batched with, and `prefill` also however the prompt is cut into chunks. `prefill` and
 * `decode` agree up to rounding.
 */
export class PagedAttention {
  readonly shape: Readonly<AttentionShape>;
  readonly #context: ComputeContext;
  readonly #rowWords: number;
  readonly #queryWords: number;
  readonly #prefill: PrefillKernel;
  readonly #decode: DecodeKernel;
  readonly #merge: DecodeMergeKernel;
  /** The last one is in use. Steps that are not yet submitted may name the others, so they are kept; sizes double, so they are few. */
  readonly #workspaces: GPUBuffer[] = [];

  /** @throws {KernelError} `kernel-dispatch` when the kernels do not serve the shape */
  constructor(context: ComputeContext, shape: AttentionShape, options: PagedAttentionOptions = {}) {
    requireAttentionShape(shape);
    this.shape = Object.freeze({ ...shape });
    this.#context = context;
    this.#rowWords = shape.numKvHeads * shape.headDim;
    this.#queryWords = shape.numQueryHeads * shape.headDim;
    const software = (options.tiling ?? (context.device.adapterInfo.isFallbackAdapter ? 'software' : 'gpu')) === 'software';
    const budget = software ? SOFTWARE_THREADS : GPU_THREADS;
    this.#prefill = known(prefillKernel(shape, prefillTiling(shape, budget)));
    this.#decode = known(decodeKernel(shape, budget));
    this.#merge = known(decodeMergeKernel(shape, budget));
  }

  /** Compiles ahead of the first step. */
  async warmUp(): Promise<void> {
    await Promise.all([this.#prefill, this.#decode, this.#merge].map((kernel) => this.#context.warmUp(kernel)));
  }

  /**
   * Adds the attention of packed chunks: one dispatch, none without tokens.
   * @throws {KernelError} `kernel-dispatch` when an operand does not fit; nothing was added then
   */
  prefill(step: ComputeStep, operands: PrefillOperands): void {
    const { numTokens, numRequests, queryStart } = operands;
    requireInteger('numTokens', numTokens, 0);
    requireInteger('numRequests', numRequests, numTokens === 0 ? 0 : 1);
    const call = this.#call(operands, numTokens, 1);
    requireBound('queryStart', queryStart, numRequests + 1);
    if (numTokens === 0) return;
    step.dispatch(this.#prefill, {
      shape: { numTokens, numRequests, numKvHeads: this.shape.numKvHeads },
      bindings: { ...this.#bindings(step, operands, call), queryStart },
    });
  }

  /**
   * Adds the attention of one query a request: one dispatch, and a second one when a request may see more than 128 keys.
   * @throws {KernelError} `kernel-dispatch` when an operand does not fit; nothing was added then
   */
  decode(step: ComputeStep, operands: DecodeOperands): void {
    const { numRequests, maxContextLength, slidingWindowSize = NO_WINDOW, numSinkTokens = 0 } = operands;
    requireInteger('maxContextLength', maxContextLength, 0);
    const numPartitions = decodePartitions(Math.min(maxContextLength, slidingWindowSize + numSinkTokens));
    const call = this.#call(operands, numRequests, numPartitions);
    if (numRequests === 0) return;
    const { numQueryHeads, numKvHeads } = this.shape;
    const shape = { numRequests, numQueryHeads, numKvHeads, numPartitions };
    const partials = this.#workspace(
      numPartitions === 1 ? 4 : numRequests * numQueryHeads * numPartitions * partialWords(this.shape),
    );
    const bindings = { ...this.#bindings(step, operands, call), partials };
    step.dispatch(this.#decode, { shape, bindings });
    if (numPartitions > 1) step.dispatch(this.#merge, { shape, bindings });
  }

  /** Frees the workspace. Steps that name it must have been submitted. */
  destroy(): void {
    for (const workspace of this.#workspaces.splice(0)) workspace.destroy();
  }

  #call(operands: AttentionOperands, numQueries: number, numPartitions: number): AttentionParams {
    const { numRequests, keys, values, queries, contextLength, output } = operands;
    const { queriesStrideWords = this.#queryWords, queriesBaseWords = 0 } = operands;
    const { slidingWindowSize = NO_WINDOW, numSinkTokens = 0 } = operands;
    requireInteger('numRequests', numRequests, 0);
    requireInteger('slidingWindowSize', slidingWindowSize, 1);
    requireInteger('numSinkTokens', numSinkTokens, 0);
    requireVecs('queriesStrideWords', queriesStrideWords);
    requireVecs('queriesBaseWords', queriesBaseWords);
    requireKvPages('keys', keys, this.#rowWords, numRequests);
    requireKvPages('values', values, this.#rowWords, numRequests);
    requireBound('contextLength', contextLength, numRequests);
    if (numQueries > 0) {
      requireBound('queries', queries, queriesBaseWords + (numQueries - 1) * queriesStrideWords + this.#queryWords);
      requireBound('output', output, numQueries * this.#queryWords);
    }
    return { numRequests, queriesBaseWords, queriesStrideWords, keys, values, slidingWindowSize, numSinkTokens, numPartitions };
  }

  #bindings(step: ComputeStep, operands: AttentionOperands, call: AttentionParams) {
    const { keys, values, queries, contextLength, output } = operands;
    return {
      params: step.upload(attentionParams(this.shape, call)),
      keyPool: keys.pool,
      valuePool: values.pool,
      keyTable: keys.table,
      valueTable: values.table,
      queries,
      contextLength,
      output,
    };
  }

  #workspace(words: number): GPUBuffer {
    const current = this.#workspaces.at(-1);
    const bytes = 4 * words;
    if (current && current.size >= bytes) return current;
    const { device } = this.#context;
    const most = Math.min(device.limits.maxStorageBufferBindingSize, device.limits.maxBufferSize);
    if (bytes > most) {
      throw attentionError(
        `the partial results take ${bytes} bytes, the device binds ${most}. Split the requests over several calls.`,
      );
    }
    const workspace = device.createBuffer({
      label: `${LABEL} partials`,
      size: Math.max(bytes, Math.min(2 * (current?.size ?? 0), most)),
      usage: BUFFER_USAGE.STORAGE,
    });
    this.#workspaces.push(workspace);
    return workspace;
  }
}

const kernels = new Map<string, Kernel<string, never, never>>();

/** The same kernel for the same text, so that what is compiled is shared by all layers and models of a device. */
function known<SomeKernel extends Kernel<string, never, never>>(kernel: SomeKernel): SomeKernel {
  const first = kernels.get(kernel.code);
  if (first) return first as SomeKernel;
  kernels.set(kernel.code, kernel);
  return kernel;
}
