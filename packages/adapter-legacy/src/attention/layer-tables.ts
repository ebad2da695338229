import type { ConsumerStep } from '@bufferwise/adapter-kit';
import type { BufferId, LayerGroupId } from '@bufferwise/core-policy';
import type { ComputeStep, PagePlaces, StepData, WebGpuPoolMemory } from '@bufferwise/gpu-kernels';
import { BAD_PAGE_INDEX, type StorageLayout } from '@bufferwise/scratch-allocator';
import { baseIndices, placesBySlot, rowsOf } from '../base-indices.ts';

/** One table, uploaded with the step. */
export interface UploadedTable {
  /** `[numRequests, rowLength]`, as uploaded. */
  readonly entries: Int32Array;
  readonly rowLength: number;
  readonly table: StepData;
}

/** How a buffer is addressed through a table: entry e is the page at word `baseWords + e × pageStrideWords` of its pool. */
export interface TablePlaces extends UploadedTable {
  readonly baseWords: number;
  readonly pageStrideWords: number;
}

/**
 * The tables of one step. A group without scratch has one: slot ids, for all layers and buffers of the group. Each buffer's place in
 * the slot is a constant, and a slot is `scale` of its pages long.
 *
 * A group with scratch has one a layer (two where its scales lie in a pool of their own), as scratch blocks of different layers share
 * slots. A layer's block is whole in a slot, so that key and value still share the table: it names the page of the first buffer, and
 * the others lie a constant number of pages behind.
 */
export class LayerTables {
  readonly #step: ConsumerStep;
  readonly #layout: StorageLayout;
  readonly #compute: ComputeStep;
  readonly #sources: ReadonlyMap<LayerGroupId, BufferId>;
  readonly #byGroup = new Map<LayerGroupId, UploadedTable>();
  readonly #byLayer = new Map<string, UploadedTable>();

  /** @param sources for each group a buffer of it whose rows the step has */
  constructor(layout: StorageLayout, step: ConsumerStep, compute: ComputeStep, sources: ReadonlyMap<LayerGroupId, BufferId>) {
    this.#layout = layout;
    this.#step = step;
    this.#compute = compute;
    this.#sources = sources;
  }

  /** How kernels find the pages of a buffer. */
  places(layerId: number, role: string): TablePlaces {
    const { lifecycleId, size } = this.#layout.bufferAttr(layerId, role);
    if (!this.#hasScratch(layerId, role)) {
      const { baseWords, strideWords } = placesBySlot(this.#layout, layerId, role);
      return { ...this.#groupTable(lifecycleId), baseWords, pageStrideWords: strideWords };
    }
    const { rankInLayer } = this.#layout.pageIndexConverter(layerId, role);
    return { ...this.#layerTable(layerId, role), baseWords: (rankInLayer * size) / 4, pageStrideWords: size / 4 };
  }

  /** What kernels bind to read a buffer. `table`: another one for the same places. */
  pages(layerId: number, role: string, table?: StepData): PagePlaces {
    const places = this.places(layerId, role);
    return {
      pool: (this.#step.poolMemory(layerId, role) as WebGpuPoolMemory).buffer,
      table: table ?? places.table,
      tableStride: places.rowLength,
      tokensPerPage: this.#layout.tokensPerBlock,
      pageStrideWords: places.pageStrideWords,
      baseWords: places.baseWords,
    };
  }

  #groupTable(groupId: LayerGroupId): UploadedTable {
    let table = this.#byGroup.get(groupId);
    if (table === undefined) {
      const source = this.#sources.get(groupId) as BufferId;
      table = this.#uploaded(baseIndices(this.#step.pages, source), source);
      this.#byGroup.set(groupId, table);
    }
    return table;
  }

  #layerTable(layerId: number, role: string): UploadedTable {
    const first = firstOfLayer(this.#layout, layerId, role);
    const key = `${layerId} ${first.role}`;
    let table = this.#byLayer.get(key);
    if (table === undefined) {
      table = this.#uploaded(rowsOf(this.#step.pages, layerId, first.role), first);
      this.#byLayer.set(key, table);
    }
    return table;
  }

  #uploaded(entries: Int32Array, { layerId, role }: BufferId): UploadedTable {
    return { entries, rowLength: this.#step.pages.rowLength(layerId, role), table: this.#compute.upload(entries) };
  }

  #hasScratch(layerId: number, role: string): boolean {
    const { pages, requests } = this.#step;
    return requests.some((_, request) => pages.scratchRange(layerId, role, request) !== null);
  }
}

/** The first buffer of a layer among those that share a slot with one of its buffers. */
export function firstOfLayer(layout: StorageLayout, layerId: number, role: string): BufferId {
  return layout.coalescedBuffer(layerId, role).bufferIds.find((id) => id.layerId === layerId) as BufferId;
}

/** A table with rows of other requests, by their numbers; a row without pages where the number is -1. */
export function pickRows({ entries, rowLength }: UploadedTable, requests: readonly number[]): Int32Array {
  const picked = new Int32Array(requests.length * rowLength).fill(BAD_PAGE_INDEX);
  requests.forEach((request, i) => {
    if (request >= 0) picked.set(entries.subarray(request * rowLength, (request + 1) * rowLength), i * rowLength);
  });
  return picked;
}
