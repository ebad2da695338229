import type { BlockRange, BufferId } from '@bufferwise/core-policy';
import { type PageSource, StepTable, type StorageLayout } from '@bufferwise/scratch-allocator';

/**
 * The index tables of a step by buffer, all in one array: to be uploaded in one go, or read row by row.
 *
 * A row holds the page indices of one request, in pages of the buffer: `maxBlocks × expansion` entries for attention, `expansion`
 * for recurrent state; `BAD_PAGE_INDEX` (-1) where there is no page.
 */
export class StepPages {
  readonly layout: StorageLayout;
  readonly #table: StepTable;
  readonly #positions = new Map<string, number>();
  #entries = new Int32Array(256);
  #scratch: (BlockRange | null)[][] = [];
  #numRequests = 0;
  #maxBlocks = 0;

  /** @throws {UnknownBufferError} when the layout has no such buffer */
  constructor(layout: StorageLayout, bufferIds: readonly BufferId[]) {
    this.layout = layout;
    this.#table = new StepTable(layout, bufferIds);
    for (const [position, { layerId, role }] of bufferIds.entries()) this.#positions.set(`${layerId} ${role}`, position);
  }

  get numRequests(): number {
    return this.#numRequests;
  }

  /** Blocks that a row has room for. */
  get maxBlocks(): number {
    return this.#maxBlocks;
  }

  /** All tables of the step, one behind the other. The array is used again for the next step. */
  get entries(): Int32Array {
    return this.#entries.subarray(0, this.#table.length(this.#numRequests, this.#maxBlocks));
  }

  /**
   * Reads where the pages of all requests are now. What was read before is gone.
   *
   * @param sources  one for each row: a `KvCache`, or one of its beams
   * @param maxBlocks blocks of the longest of them
   * @throws {StateError} as `StepTable.fill`; the tables are as before then
   */
  fill(sources: readonly PageSource[], maxBlocks: number): void {
    const length = this.#table.length(sources.length, maxBlocks);
    const entries = this.#entries.length < length ? new Int32Array(Math.max(length, 2 * this.#entries.length)) : this.#entries;
    this.#table.fill(sources, maxBlocks, entries);
    this.#entries = entries;
    this.#numRequests = sources.length;
    this.#maxBlocks = maxBlocks;
    const { lifecycles } = this.layout;
    this.#scratch = lifecycles.bufferGrouping.map((_, id) => {
      const isAttention = lifecycles.get(id as Parameters<typeof lifecycles.get>[0]).kind === 'attention';
      return sources.map((source) =>
        isAttention ? (source.scratch(id as Parameters<typeof lifecycles.get>[0])?.range ?? null) : null,
      );
    });
  }

  /** The page indices of one request in one buffer: a view, valid until the next `fill`. Throws {StateError} on a buffer that it was not made for. */
  row(layerId: number, role: string, request: number): Int32Array {
    const length = this.rowLength(layerId, role);
    const begin = this.rowsAt(layerId, role) + request * length;
    return this.#entries.subarray(begin, begin + length);
  }

  /** Where in `entries` the rows of a buffer begin: that of request 0. */
  rowsAt(layerId: number, role: string): number {
    return this.#table.rowsAt(this.#position(layerId, role), this.#numRequests, this.#maxBlocks);
  }

  /** Entries from one request to the next. */
  rowLength(layerId: number, role: string): number {
    return this.#table.rowLength(this.#position(layerId, role), this.#maxBlocks);
  }

  /** Blocks of a request whose pages of a buffer are scratch, gone when the step ends; null when there are none. */
  scratchRange(layerId: number, role: string, request: number): BlockRange | null {
    const { lifecycleId } = this.layout.bufferAttr(layerId, role);
    return this.#scratch[lifecycleId]?.[request] ?? null;
  }

  /** -1 for a buffer that it was not made for, which the table refuses. */
  #position(layerId: number, role: string): number {
    return this.#positions.get(`${layerId} ${role}`) ?? -1;
  }
}
