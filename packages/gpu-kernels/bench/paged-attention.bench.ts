import { openGpu } from '@bufferwise-internal/webgpu-node';
import { ComputeContext } from '../src/kernel/compute-context.ts';
import type { ComputeStep } from '../src/kernel/compute-step.ts';
import { BUFFER_USAGE } from '../src/kernel/gpu-flags.ts';
import {
  type AttentionShape,
  type DecodeOperands,
  PagedAttention,
  type PrefillOperands,
} from '../src/kernels/paged-attention/paged-attention.ts';

export interface PagedAttentionFigure {
  /** `query heads / key-value heads x headDim`. */
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
}

const SHAPES: readonly AttentionShape[] = [
  { numQueryHeads: 4, numKvHeads: 2, headDim: 32 },
  { numQueryHeads: 8, numKvHeads: 2, headDim: 64 },
];
const TOKENS_PER_PAGE = 32;
const ROUNDS = 15;

/** Attention over scattered pages against the same kernel over contiguous memory: a prompt of 512 tokens, and decode of one and of many requests. */
export default async function bench(): Promise<PagedAttentionFigure[]> {
  const adapter = await openGpu();
  const device = await adapter.requestDevice({ label: 'paged-attention bench' });
  const context = ComputeContext.of(device);
  const figures: PagedAttentionFigure[] = [];
  for (const shape of SHAPES) {
    const attention = new PagedAttention(context, shape);
    await attention.warmUp();
    const works = [
      { work: 'prefill', numRequests: 1, contextLength: 512, slidingWindowSize: 0 },
      { work: 'prefill', numRequests: 1, contextLength: 512, slidingWindowSize: 128 },
      { work: 'decode', numRequests: 1, contextLength: 512, slidingWindowSize: 0 },
      { work: 'decode', numRequests: 16, contextLength: 512, slidingWindowSize: 0 },
      { work: 'decode', numRequests: 1, contextLength: 8192, slidingWindowSize: 0 },
    ] as const;
    for (const { work, numRequests, contextLength, slidingWindowSize } of works) {
      const runs = (['scattered', 'identity'] as const).map((order) => {
        const operands = createOperands(device, shape, numRequests, contextLength, work === 'prefill', order);
        const windowed = slidingWindowSize === 0 ? operands : { ...operands, slidingWindowSize };
        return () => submit(context, (step) => attention[work](step, windowed));
      });
      const [pagedMs, contiguousMs] = await medianMs(device, runs);
      figures.push({
        shape: `${shape.numQueryHeads}/${shape.numKvHeads} x ${shape.headDim}`,
        work,
        numRequests,
        contextLength,
        slidingWindowSize,
        pagedMs,
        contiguousMs,
        ratio: pagedMs / contiguousMs,
      });
    }
    attention.destroy();
  }
  device.destroy();
  return figures;
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
    const usage = BUFFER_USAGE.STORAGE | BUFFER_USAGE.COPY_DST;
    const made = device.createBuffer({ label: 'bench', size: data.byteLength, usage });
    device.queue.writeBuffer(made, 0, data);
    return made;
  };
  // A golden-ratio sequence: even, without a generator, and the same in every run.
  const filled = (words: number) => buffer(Float32Array.from({ length: words }, (_, i) => ((i * 0.6180339887) % 1) - 0.5));
  const pageStrideWords = TOKENS_PER_PAGE * shape.numKvHeads * shape.headDim;
  const tableStride = contextLength / TOKENS_PER_PAGE;
  const numPages = numRequests * tableStride;
  // 5 is coprime to the number of pages, a power of two.
  const table = buffer(Int32Array.from({ length: numPages }, (_, i) => (order === 'identity' ? i : (i * 5 + 3) % numPages)));
  const pages = () => ({
    pool: filled(numPages * pageStrideWords),
    table,
    tableStride,
    tokensPerPage: TOKENS_PER_PAGE,
    pageStrideWords,
  });
  const queriesPerRequest = allQueries ? contextLength : 1;
  const numTokens = numRequests * queriesPerRequest;
  return {
    keys: pages(),
    values: pages(),
    queries: filled(numTokens * shape.numQueryHeads * shape.headDim),
    queryStart: buffer(Uint32Array.from({ length: numRequests + 1 }, (_, r) => r * queriesPerRequest)),
    contextLength: buffer(new Uint32Array(numRequests).fill(contextLength)),
    output: filled(numTokens * shape.numQueryHeads * shape.headDim),
    numTokens,
    numRequests,
    maxContextLength: contextLength,
  };
}

/** Median time until each work has landed. The works take turns, so that a busy moment hits them alike. */
async function medianMs(device: GPUDevice, works: readonly (() => void)[]): Promise<number[]> {
  const times: number[][] = works.map(() => []);
  for (let round = -2; round < ROUNDS; round++) {
    for (let i = 0; i < works.length; i++) {
      const start = performance.now();
      works[i]();
      await device.queue.onSubmittedWorkDone();
      if (round >= 0) times[i].push(performance.now() - start);
    }
  }
  return times.map((of) => of.sort((a, b) => a - b)[of.length >> 1]);
}
