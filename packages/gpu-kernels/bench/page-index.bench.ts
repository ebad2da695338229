import { type CacheConfigInput, defineCacheConfig, type LifecycleId } from '@bufferwise/core-policy';
import { type PageSource, type ScratchDesc, StepTable, StorageLayout } from '@bufferwise/scratch-allocator';
import { openGpu } from '@bufferwise-internal/webgpu-node';
import { ComputeContext } from '../src/kernel/compute-context.ts';
import { BUFFER_USAGE } from '../src/kernel/gpu-flags.ts';
import {
  type PageIndexSection,
  type PageIndexSource,
  pageIndexKernel,
  planPageIndex,
  recordPageIndex,
} from '../src/kernels/page-index/page-index.ts';
import { medianMs } from './median-ms.ts';

export interface PageIndexFigure {
  numRequests: number;
  /** Blocks of every request. */
  blocks: number;
  /** Entries of all tables together. */
  entries: number;
  /** Kilobytes uploaded when the host makes the tables, and when the device does. */
  hostKb: number;
  deviceKb: number;
  /** Milliseconds until the tables are on the device, made by the host; median. */
  hostMs: number;
  /** The same, made by the device, in one dispatch. */
  deviceMs: number;
  /** hostMs / deviceMs. */
  speedup: number;
}

export const columns = {
  hostKb: { unit: 'kB', better: 'lower' },
  deviceKb: { unit: 'kB', better: 'lower' },
  hostMs: { unit: 'ms', better: 'lower' },
  deviceMs: { unit: 'ms', better: 'lower' },
  speedup: { unit: 'x', better: 'higher' },
} satisfies Partial<Record<keyof PageIndexFigure, object>>;

const NUM_LAYERS = 32;

/** Tables of a model with full and windowed layers whose blocks cross scratch slots: converted by the host, and by the device. */
export default async function bench(): Promise<PageIndexFigure[]> {
  const adapter = await openGpu();
  const device = await adapter.requestDevice({ label: 'page-index bench' });
  const context = ComputeContext.of(device);
  await context.warmUp(pageIndexKernel);
  const figures: PageIndexFigure[] = [];
  for (const [numRequests, blocks] of [
    [1, 64],
    [1, 1024],
    [16, 256],
    [64, 256],
  ]) {
    figures.push(await measure(device, context, numRequests, blocks));
  }
  device.destroy();
  return figures;
}

async function measure(
  device: GPUDevice,
  context: ComputeContext,
  numRequests: number,
  blocks: number,
): Promise<PageIndexFigure> {
  const layout = StorageLayout.fromConfig(defineCacheConfig(model()));
  const ids = layout.lifecycles.bufferGrouping.flat();
  const requests = Array.from({ length: numRequests }, () => someRequest(layout, blocks));

  const table = new StepTable(layout, ids);
  const entries = new Int32Array(table.length(numRequests, blocks));
  let hostBytes = 0;
  const byHost = () => {
    const step = context.step('host tables');
    table.fill(requests, blocks, entries);
    step.upload(entries);
    hostBytes = step.submit().uploadedBytes;
  };

  const sections = ids.map(({ layerId, role }): PageIndexSection => {
    const { scale, expansion, layerOffset, scratchPagesPerBlock, rankInLayer } = layout.pageIndexConverter(layerId, role);
    const source = layout.bufferAttr(layerId, role).lifecycleId;
    return { source, scale, expansion, layerOffset, scratchPagesPerBlock, rankInLayer };
  });
  const target = device.createBuffer({
    size: planPageIndex(numRequests, new Array(layout.lifecycles.size).fill({ blocks }), sections).bytes,
    usage: BUFFER_USAGE.STORAGE,
  });
  let deviceBytes = 0;
  const byDevice = () => {
    const step = context.step('device tables');
    recordPageIndex(step, { numRequests, sources: gather(layout, requests, blocks), sections, target });
    deviceBytes = step.submit().uploadedBytes;
  };

  const [hostMs, deviceMs] = await medianMs(device, [byHost, byDevice]);
  target.destroy();
  return {
    numRequests,
    blocks,
    entries: entries.length,
    hostKb: hostBytes / 1000,
    deviceKb: deviceBytes / 1000,
    hostMs,
    deviceMs,
    speedup: hostMs / deviceMs,
  };
}

/** Two thirds of the layers have a window; the last of them has keys only, so that blocks of layers cross slots. */
function model(): CacheConfigInput {
  return {
    tokensPerBlock: 32,
    tiers: [{ tier: 'device', quota: 2 ** 30 }],
    swaScratchReuse: {},
    layers: Array.from({ length: NUM_LAYERS }, (_, layerId) => ({
      type: 'attention' as const,
      layerId,
      slidingWindowSize: layerId % 3 === 0 ? undefined : 512,
      buffers: (layerId === NUM_LAYERS - 1 ? ['key'] : ['key', 'value']).map((role) => ({ role, size: 4096 })),
    })),
  };
}

/** The last quarter of the blocks are scratch where there is a window. */
function someRequest(layout: StorageLayout, blocks: number): PageSource {
  const slots = layout.lifecycles.bufferGrouping.map((_, id) =>
    Int32Array.from({ length: blocks }, (_, i) => (i * 7 + id * 13) % 4096),
  );
  const scratch = layout.lifecycles.bufferGrouping.map((_, index): ScratchDesc | null => {
    const id = index as LifecycleId;
    const lifecycle = layout.lifecycles.get(id);
    if (lifecycle.kind !== 'attention' || lifecycle.windowSize === null) return null;
    const range = { begin: blocks - (blocks >> 2), end: blocks };
    return { range, slotIds: Int32Array.from({ length: layout.scratchSlots(id, blocks >> 2) }, (_, i) => i) };
  });
  return { basePageIndices: (id) => slots[id], ssmBlockBaseIndex: () => -1, scratch: (id) => scratch[id] };
}

function gather(layout: StorageLayout, requests: readonly PageSource[], blocks: number): PageIndexSource[] {
  return layout.lifecycles.bufferGrouping.map((_, index) => {
    const id = index as LifecycleId;
    const slotIds = new Int32Array(requests.length * blocks);
    requests.forEach((request, i) => {
      slotIds.set(request.basePageIndices(id), i * blocks);
    });
    return { blocks, slotIds, scratch: requests.map((request) => request.scratch(id)) };
  });
}
