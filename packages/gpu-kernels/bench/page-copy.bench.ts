import { openGpu } from '@bufferwise-internal/webgpu-node';
import { ComputeContext } from '../src/kernel/compute-context.ts';
import { BUFFER_USAGE } from '../src/kernel/gpu-flags.ts';
import { addPageCopy, uploadSlotPairs } from '../src/kernels/page-copy/page-copy.ts';

export interface PageCopyFigure {
  /** Bytes of one page. */
  slotBytes: number;
  /** Pages copied in one step. */
  numPages: number;
  /** Median GB/s of the kernel, table upload and submission included. */
  kernelGbPerSecond: number;
  /** Median GB/s of one copyBufferToBuffer of the same bytes between two buffers. */
  plainGbPerSecond: number;
  /** kernel / plain; 0.8 is the least to reach. */
  ratio: number;
}

const POOL_BYTES = 64 * 2 ** 20;
const COPIED_BYTES = 16 * 2 ** 20;
const ROUNDS = 25;

/** Page copy inside a pool, with scattered pages, against one plain copy of the same bytes. */
export default async function bench(): Promise<PageCopyFigure[]> {
  const adapter = await openGpu();
  const device = await adapter.requestDevice({ label: 'page-copy bench' });
  const usage = BUFFER_USAGE.STORAGE | BUFFER_USAGE.COPY_SRC | BUFFER_USAGE.COPY_DST;
  const pool = device.createBuffer({ label: 'pool', size: POOL_BYTES, usage });
  const other = device.createBuffer({ label: 'other', size: COPIED_BYTES, usage });
  const figures: PageCopyFigure[] = [];
  for (const slotBytes of [16, 32, 64, 128, 256].map((kib) => kib * 1024)) {
    const numPages = COPIED_BYTES / slotBytes;
    const numSlots = POOL_BYTES / slotBytes;
    // Sources and targets alternate and are visited in a scattered order: 5 is coprime to every power of two.
    const scattered = Int32Array.from({ length: numPages }, (_, i) => (i * 5) % numPages);
    const sources = scattered.map((page) => page * 2);
    const targets = scattered.map((page) => numSlots - 1 - page * 2);
    const kernel = () => {
      const step = ComputeContext.of(device).step('page-copy bench');
      const slots = uploadSlotPairs(step, sources, targets, numPages);
      addPageCopy(step, { pool, slotBytes, slots, count: numPages });
      step.submit();
    };
    const plain = () => {
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(pool, 0, other, 0, COPIED_BYTES);
      device.queue.submit([encoder.finish()]);
    };
    const [kernelMs, plainMs] = await medianMs(device, [kernel, plain]);
    figures.push({
      slotBytes,
      numPages,
      kernelGbPerSecond: COPIED_BYTES / kernelMs / 1e6,
      plainGbPerSecond: COPIED_BYTES / plainMs / 1e6,
      ratio: plainMs / kernelMs,
    });
  }
  device.destroy();
  return figures;
}

/** Median time until each work has landed. The works take turns, so that a busy moment hits them alike. */
export async function medianMs(device: GPUDevice, works: readonly (() => void)[]): Promise<number[]> {
  const times: number[][] = works.map(() => []);
  for (let round = -3; round < ROUNDS; round++) {
    for (let i = 0; i < works.length; i++) {
      const start = performance.now();
      works[i]();
      await device.queue.onSubmittedWorkDone();
      if (round >= 0) times[i].push(performance.now() - start);
    }
  }
  return times.map((of) => of.sort((a, b) => a - b)[of.length >> 1]);
}
