import { openGpu } from '@bufferwise-internal/webgpu-node';
import { ComputeContext } from '../src/kernel/compute-context.ts';
import type { ComputeStep } from '../src/kernel/compute-step.ts';
import { BUFFER_USAGE } from '../src/kernel/gpu-flags.ts';
import { type KvPages, NUMBERS_PER_WORD } from '../src/kernels/kv-pages/kv-pages.ts';
import { fullAttentionShape } from '../src/kernels/paged-attention/attention-shape.ts';
import { variantOf } from '../src/kernels/paged-attention/attention-variant.ts';
import { decodeTiling } from '../src/kernels/paged-attention/decode-kernel.ts';
import {
  type AttentionShape,
  type DecodeOperands,
  latentAttention,
  PagedAttention,
  type PrefillOperands,
} from '../src/kernels/paged-attention/paged-attention.ts';
import { GPU_THREADS } from '../src/kernels/paged-attention/thread-budget.ts';
import { medianMs } from './median-ms.ts';

export interface PagedAttentionFigure {
  /** `query heads / key-value heads x headDim`, and what is special. */
  shape: string;
  work: 'prefill' | 'decode';
  numRequests: number;
  contextLength: number;
  /** 0 = none. */
  slidingWindowSize: number;
  /** Median milliseconds with pages in a scattered order, submission included. */
  pagedMs: number;
  /** The same kernel on contiguous memory: the identity table. */
  contiguousMs: number;
  /** pagedMs / contiguousMs. To stay below 1.10. */
  ratio: number;
  /** MB of keys, values and scales that there are to be read: the least a step can move. */
  leastMB: number;
  /** Decode: what its workgroups load, over the least. Above 1 where heads of a group are many, or values are read again as keys. */
  loaded: number | '';
}

export const columns = {
  pagedMs: { unit: 'ms', better: 'lower' },
  contiguousMs: { unit: 'ms', better: 'none' },
  ratio: { unit: 'x', better: 'lower' },
  leastMB: { unit: 'MB', better: 'none' },
  loaded: { unit: 'x', better: 'lower' },
} satisfies Partial<Record<keyof PagedAttentionFigure, object>>;

const PLAIN: readonly AttentionShape[] = [
  { numQueryHeads: 4, numKvHeads: 2, headDim: 32 },
  { numQueryHeads: 8, numKvHeads: 2, headDim: 64 },
];
const VARIANTS: readonly AttentionShape[] = [
  { numQueryHeads: 8, numKvHeads: 2, headDim: 64, storage: 'f16' },
  { numQueryHeads: 8, numKvHeads: 2, headDim: 64, storage: 'int8' },
  { numQueryHeads: 8, numKvHeads: 2, headDim: 64, learnedSinks: true },
  { numQueryHeads: 8, numKvHeads: 2, headDim: 64, selectsBlocks: true },
  latentAttention({ numQueryHeads: 8, latentDim: 128, rotatedDim: 32, scale: 0.1 }),
];
const TOKENS_PER_PAGE = 32;
/** Of selected blocks: one in four pages. */
const SELECTED_PART = 4;

interface Work {
  work: 'prefill' | 'decode';
  numRequests: number;
  contextLength: number;
  slidingWindowSize: number;
}

const WORKS: readonly Work[] = [
  { work: 'prefill', numRequests: 1, contextLength: 512, slidingWindowSize: 0 },
  { work: 'decode', numRequests: 16, contextLength: 512, slidingWindowSize: 0 },
];
const MORE_WORKS: readonly Work[] = [
  { work: 'prefill', numRequests: 1, contextLength: 512, slidingWindowSize: 128 },
  { work: 'decode', numRequests: 1, contextLength: 512, slidingWindowSize: 0 },
  { work: 'decode', numRequests: 1, contextLength: 8192, slidingWindowSize: 0 },
];

/** Attention over scattered pages against the same kernel over contiguous memory: a prompt of 512 tokens, and decode of one and of many requests. */
export default async function bench(): Promise<PagedAttentionFigure[]> {
  const adapter = await openGpu();
  const device = await adapter.requestDevice({ label: 'paged-attention bench' });
  const context = ComputeContext.of(device);
  const figures: PagedAttentionFigure[] = [];
  for (const shape of [...PLAIN, ...VARIANTS]) {
    const attention = new PagedAttention(context, shape);
    await attention.warmUp();
    for (const some of PLAIN.includes(shape) ? [...WORKS, ...MORE_WORKS] : WORKS) {
      const { work, numRequests, contextLength, slidingWindowSize } = some;
      const runs = (['scattered', 'identity'] as const).map((order) => {
        const operands = createOperands(device, shape, numRequests, contextLength, work === 'prefill', order);
        const windowed = slidingWindowSize === 0 ? operands : { ...operands, slidingWindowSize };
        return () => submit(context, (step) => attention[work](step, windowed));
      });
      const [pagedMs, contiguousMs] = await medianMs(device, runs);
      figures.push({
        shape: nameOf(shape),
        ...some,
        pagedMs,
        contiguousMs,
        ratio: pagedMs / contiguousMs,
        ...traffic(shape, some),
      });
    }
    attention.destroy();
  }
  device.destroy();
  return figures;
}

function nameOf({
  numQueryHeads,
  numKvHeads,
  headDim,
  storage,
  learnedSinks,
  selectsBlocks,
  valuesInKeys,
}: AttentionShape): string {
  const special = [storage, learnedSinks && 'sinks', selectsBlocks && 'selected', valuesInKeys && 'latent'].filter(Boolean);
  return [`${numQueryHeads}/${numKvHeads} x ${headDim}`, ...special].join(' ');
}

/** Counted, not measured: how often the workgroups of decode go through the keys and values. */
function traffic(shape: AttentionShape, { work, numRequests, contextLength, slidingWindowSize }: Work) {
  const { numKvHeads, headDim, valueDim, valuesInKeys, storage, selectsBlocks } = fullAttentionShape(shape);
  const seen = Math.min(slidingWindowSize || contextLength, contextLength) / (selectsBlocks ? SELECTED_PART : 1);
  // Of a prefill, the queries of the first tokens see what the window has left behind.
  const tokens = numRequests * (work === 'prefill' && !selectsBlocks ? contextLength : seen);
  const bytesPerNumber = 4 / NUMBERS_PER_WORD[storage];
  const scaleBytes = storage === 'int8' ? (tokens / TOKENS_PER_PAGE) * numKvHeads * 4 * (valuesInKeys ? 1 : 2) : 0;
  const bytesOf = (numbers: number) => tokens * numKvHeads * numbers * bytesPerNumber + scaleBytes;
  const least = bytesOf(valuesInKeys ? headDim : headDim + valueDim);
  const { headTiles } = decodeTiling(variantOf(fullAttentionShape(shape), new Set(), 1), GPU_THREADS);
  const loaded: number | '' = work === 'prefill' ? '' : (headTiles * bytesOf(headDim + valueDim)) / least;
  return { leastMB: least / 1e6, loaded };
}

function submit(context: ComputeContext, record: (step: ComputeStep) => void): void {
  const step = context.step('bench');
  record(step);
  step.submit();
}

function createOperands(
  device: GPUDevice,
  shape: AttentionShape,
  numRequests: number,
  contextLength: number,
  allQueries: boolean,
  order: 'scattered' | 'identity',
): PrefillOperands & DecodeOperands {
  const buffer = (data: Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer>) => {
    const usage = BUFFER_USAGE.STORAGE | BUFFER_USAGE.COPY_DST | BUFFER_USAGE.COPY_SRC;
    const made = device.createBuffer({ label: 'bench', size: data.byteLength, usage });
    device.queue.writeBuffer(made, 0, data);
    return made;
  };
  const { numQueryHeads, numKvHeads, headDim, valueDim, storage, valuesInKeys, learnedSinks, selectsBlocks } =
    fullAttentionShape(shape);
  // A golden-ratio sequence: even, without a generator, and the same in every run.
  const filled = (words: number) => buffer(Float32Array.from({ length: words }, (_, i) => ((i * 0.6180339887) % 1) - 0.5));
  // Numbers of f16 and int8 are what these words hold; scales and halves stay small and finite.
  const stored = (words: number) => (storage === 'f32' ? filled(words) : buffer(new Uint32Array(words).fill(0x2c01_2d02)));
  const tableStride = contextLength / TOKENS_PER_PAGE;
  const numPages = numRequests * tableStride;
  // 5 is coprime to the number of pages, a power of two.
  const table = buffer(Int32Array.from({ length: numPages }, (_, i) => (order === 'identity' ? i : (i * 5 + 3) % numPages)));
  const places = { table, tableStride, tokensPerPage: TOKENS_PER_PAGE };
  const pages = (dim: number): KvPages => {
    const pageStrideWords = (TOKENS_PER_PAGE * numKvHeads * dim) / NUMBERS_PER_WORD[storage];
    const scales = { ...places, pool: filled(numPages * numKvHeads), pageStrideWords: numKvHeads };
    return {
      ...places,
      pool: stored(numPages * pageStrideWords),
      pageStrideWords,
      ...(storage === 'int8' ? { scales } : {}),
    };
  };
  const maxBlocks = tableStride / SELECTED_PART;
  const selectedBlocks = {
    pool: buffer(Int32Array.from({ length: maxBlocks }, (_, i) => i * SELECTED_PART)),
    table: buffer(new Int32Array(numRequests)),
    pageStrideWords: maxBlocks,
    maxBlocks,
    tokensPerBlock: TOKENS_PER_PAGE,
  };
  const queriesPerRequest = allQueries ? contextLength : 1;
  const numTokens = numRequests * queriesPerRequest;
  return {
    keys: pages(headDim),
    ...(valuesInKeys ? {} : { values: pages(valueDim) }),
    queries: filled(numTokens * numQueryHeads * headDim),
    queryStart: buffer(Uint32Array.from({ length: numRequests + 1 }, (_, r) => r * queriesPerRequest)),
    contextLength: buffer(new Uint32Array(numRequests).fill(contextLength)),
    output: filled(numTokens * numQueryHeads * valueDim),
    numTokens,
    numRequests,
    maxContextLength: contextLength,
    ...(learnedSinks ? { sinkScores: new Float32Array(numQueryHeads) } : {}),
    ...(selectsBlocks ? { selectedBlocks } : {}),
  };
}
