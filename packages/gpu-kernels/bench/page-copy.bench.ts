import { openGpu } from '@bufferwise-internal/webgpu-node';
import { WebGpuPageDevice } from '../src/device/webgpu-page-device.ts';
import { BUFFER_USAGE } from '../src/kernel/gpu-flags.ts';
import { medianMs } from './median-ms.ts';

export interface PageCopyFigure {
  /** Bytes of one page. */
  slotBytes: number;
  /** Pages copied in one `execute`. */
  numPages: number;
  /** Median GB/s of one copyBufferToBuffer of the same bytes between two buffers. */
  plainGbPerSecond: number;
  /** Bandwidth of the page-copy kernel as a part of that, table upload and submission included. A GPU is to reach 0.8. */
  kernelRatio: number;
  /** The same, of copy commands through a small buffer: what is used on a software device, where a copy is a memcpy. */
  commandsRatio: number;
}

export const columns = {
  plainGbPerSecond: { unit: 'GB/s', better: 'none' },
  kernelRatio: { unit: 'x', better: 'higher' },
  commandsRatio: { unit: 'x', better: 'higher' },
} satisfies Partial<Record<keyof PageCopyFigure, object>>;

const POOL_BYTES = 64 * 2 ** 20;
const COPIED_BYTES = 16 * 2 ** 20;

/** Page copy inside a pool, with scattered pages, against one plain copy of the same bytes. */
export default async function bench(): Promise<PageCopyFigure[]> {
  const adapter = await openGpu();
  const device = await adapter.requestDevice({ label: 'page-copy bench' });
  const other = device.createBuffer({ label: 'other', size: COPIED_BYTES, usage: BUFFER_USAGE.COPY_DST });
  const figures: PageCopyFigure[] = [];
  for (const slotBytes of [16, 32, 64, 128, 256].map((kib) => kib * 1024)) {
    const numPages = COPIED_BYTES / slotBytes;
    const numSlots = POOL_BYTES / slotBytes;
    // Every second slot, in a scattered order: 5 is coprime to every power of two.
    const scattered = Int32Array.from({ length: numPages }, (_, i) => (i * 5) % numPages);
    const sources = scattered.map((page) => page * 2);
    const targets = scattered.map((page) => numSlots - 1 - page * 2);
    const spec = { label: 'bench', slotBytes, numSlots };
    const copies = (['kernel', 'commands'] as const).map((pageMoves) => {
      const pages = new WebGpuPageDevice(device, { pageMoves });
      const pool = pages.createPool(spec);
      return { pages, pool, run: () => pages.execute([{ kind: 'copy', pools: [pool], sources, targets, count: numPages }]) };
    });
    const plain = () => {
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(copies[0].pool.buffer, 0, other, 0, COPIED_BYTES);
      device.queue.submit([encoder.finish()]);
    };
    const [plainMs, kernelMs, commandsMs] = await medianMs(device, [plain, ...copies.map(({ run }) => run)]);
    figures.push({
      slotBytes,
      numPages,
      plainGbPerSecond: COPIED_BYTES / plainMs / 1e6,
      kernelRatio: plainMs / kernelMs,
      commandsRatio: plainMs / commandsMs,
    });
    for (const { pages } of copies) pages.destroy();
  }
  device.destroy();
  return figures;
}
