import type { KvCacheManager } from '@bufferwise/cache-manager';
import type { BufferId } from '@bufferwise/core-policy';
import type { ComputeStep, StepData, WebGpuPoolMemory } from '@bufferwise/gpu-kernels';
import { StepTable } from '@bufferwise/scratch-allocator';
import type { SequenceChunk } from './gpu-model.ts';

/** The pages of one buffer as the kernels of one step read them. Lengths in 32-bit words. */
export interface BoundPages {
  pool: GPUBuffer;
  /** `[numRequests, tableStride] i32`: page indices of each request, -1 where there is no page. */
  table: StepData;
  tableStride: number;
  pageStrideWords: number;
}

/** Turns the manager's base indices into the page tables of a step: one for each buffer, all in the step's one upload. */
export class PagedBuffers {
  readonly #manager: KvCacheManager;
  readonly #table: StepTable;
  readonly #positions = new Map<string, number>();
  #entries = new Int32Array(1024);

  constructor(manager: KvCacheManager, bufferIds: readonly BufferId[]) {
    this.#manager = manager;
    this.#table = new StepTable(manager.layout, bufferIds);
    for (const [position, id] of bufferIds.entries()) this.#positions.set(keyOf(id), position);
  }

  /** Reads where the requests' pages are now, and returns what finds a buffer's tables among it. */
  bind(step: ComputeStep, chunks: readonly SequenceChunk[]): (id: BufferId) => BoundPages {
    const { tokensPerBlock } = this.#manager.layout;
    const maxBlocks = Math.max(...chunks.map(({ cache }) => Math.ceil(cache.capacity / tokensPerBlock)));
    const requests = chunks.map(({ cache, pages, beam = 0 }) => pages ?? cache.beam(beam));
    const length = this.#table.length(requests.length, maxBlocks);
    if (this.#entries.length < length) this.#entries = new Int32Array(Math.max(length, this.#entries.length * 2));
    this.#table.fill(requests, maxBlocks, this.#entries);
    return (id) => this.#bound(step, id, requests.length, maxBlocks);
  }

  #bound(step: ComputeStep, id: BufferId, numRequests: number, maxBlocks: number): BoundPages {
    const position = this.#positions.get(keyOf(id)) as number;
    const begin = this.#table.rowsAt(position, numRequests, maxBlocks);
    const tableStride = this.#table.rowLength(position, maxBlocks);
    const memory = this.#manager.poolMemory(id.layerId, id.role) as WebGpuPoolMemory;
    return {
      pool: memory.buffer,
      table: step.upload(this.#entries.subarray(begin, begin + numRequests * tableStride)),
      tableStride,
      pageStrideWords: this.#manager.layout.pageStride(id.layerId, id.role) / 4,
    };
  }
}

function keyOf({ layerId, role }: BufferId): string {
  return `${layerId} ${role}`;
}
