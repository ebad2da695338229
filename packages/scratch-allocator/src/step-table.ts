import { type BufferId, type LifecycleId, StateError } from '@bufferwise/core-policy';
import type { StorageLayout } from './layout/storage-layout.ts';
import { BAD_PAGE_INDEX, type PageIndexConverter, type PageIndexMode } from './page-index-converter.ts';
import type { ScratchDesc } from './scratch/scratch-desc.ts';

/** Where the pages of one sequence lie: a request (`KvCache` of `@bufferwise/cache-manager` is one), or one beam of it. */
export interface PageSource {
  /** Slot id of each block, -1 where there is none. Asked for attention only, once for each lifecycle and `fill`. */
  basePageIndices(id: LifecycleId): Int32Array;
  /** Slot id of the recurrent state. Asked for SSM only. */
  ssmBlockBaseIndex(id: LifecycleId): number;
  /** Scratch of the running step, or null. Asked for attention only. */
  scratch(id: LifecycleId): ScratchDesc | null;
}

/** Stands in the lists between two calls. */
const NOTHING = new Int32Array(0);

/** Rows of one buffer, or of several that read the same ones. */
interface Section {
  converter: PageIndexConverter;
  /** Entries of a row: `entriesPerBlock × maxBlocks + fixedEntries`. One of the two is 0. */
  entriesPerBlock: number;
  fixedEntries: number;
  /** The same two, summed over the sections before this one. */
  entriesPerBlockBefore: number;
  fixedEntriesBefore: number;
}

/** Sections whose base indices are the same, so that they are asked for once. */
interface LifecycleSections {
  id: LifecycleId;
  isSsm: boolean;
  sections: readonly Section[];
}

/**
 * The page indices of all requests of a step, for all buffers that its kernels read, in one array: one upload a step.
 *
 * Shape: for each section (buffers in the given order; with `shared`, the buffers of one coalesced buffer and expansion read one
 * section) a matrix `[numRequests, rowLength] i32`. A row holds `maxBlocks × expansion` entries, those of recurrent state
 * `expansion`. What lies behind the last block of a request is `BAD_PAGE_INDEX`.
 */
export class StepTable {
  readonly indexMode: PageIndexMode;
  readonly #sectionOf: readonly Section[];
  readonly #lifecycles: readonly LifecycleSections[];
  readonly #entriesPerBlock: number;
  readonly #fixedEntries: number;
  /** What the requests of a `fill` answered, lifecycle by lifecycle. The lists are kept, what they name is let go. */
  readonly #bases: Int32Array[] = [];
  readonly #scratch: (ScratchDesc | null)[] = [];
  readonly #states: number[] = [];
  readonly #state = new Int32Array(1);

  /**
   * @param bufferIds what the kernels read, in the order of `rowAt`
   * @param indexMode `per_layer` goes with every step; `shared` makes a smaller table, for steps without scratch
   * @throws {UnknownBufferError} when the layout has no such buffer
   */
  constructor(layout: StorageLayout, bufferIds: readonly BufferId[], indexMode: PageIndexMode = 'per_layer') {
    const sections = new Map<string, Section>();
    const byLifecycle = new Map<LifecycleId, Section[]>();
    let entriesPerBlock = 0;
    let fixedEntries = 0;
    this.indexMode = indexMode;
    this.#sectionOf = bufferIds.map(({ layerId, role }) => {
      const { lifecycleId, pool, indexInSlot, expansion } = layout.bufferAttr(layerId, role);
      const key = `${lifecycleId} ${pool} ${indexMode === 'shared' ? 'all' : indexInSlot} ${expansion}`;
      const known = sections.get(key);
      if (known) return known;
      const isSsm = layout.lifecycles.get(lifecycleId).kind === 'ssm';
      const section: Section = {
        converter: layout.pageIndexConverter(layerId, role),
        entriesPerBlock: isSsm ? 0 : expansion,
        fixedEntries: isSsm ? expansion : 0,
        entriesPerBlockBefore: entriesPerBlock,
        fixedEntriesBefore: fixedEntries,
      };
      entriesPerBlock += section.entriesPerBlock;
      fixedEntries += section.fixedEntries;
      sections.set(key, section);
      const sameLifecycle = byLifecycle.get(lifecycleId);
      if (sameLifecycle) sameLifecycle.push(section);
      else byLifecycle.set(lifecycleId, [section]);
      return section;
    });
    this.#entriesPerBlock = entriesPerBlock;
    this.#fixedEntries = fixedEntries;
    this.#lifecycles = [...byLifecycle].map(([id, ofLifecycle]) => ({
      id,
      isSsm: layout.lifecycles.get(id).kind === 'ssm',
      sections: ofLifecycle,
    }));
  }

  /** Entries of the whole table. */
  length(numRequests: number, maxBlocks: number): number {
    return numRequests * (this.#entriesPerBlock * maxBlocks + this.#fixedEntries);
  }

  /** Entries from one request to the next, in the rows of buffer number `buffer` of the given ones. */
  rowLength(buffer: number, maxBlocks: number): number {
    const { entriesPerBlock, fixedEntries } = this.#section(buffer);
    return entriesPerBlock * maxBlocks + fixedEntries;
  }

  /** Where the rows of buffer number `buffer` begin: the row of request 0. */
  rowsAt(buffer: number, numRequests: number, maxBlocks: number): number {
    return startOf(this.#section(buffer), numRequests, maxBlocks);
  }

  /**
   * Writes the table of a step. Creates no garbage once it has seen as many requests before.
   *
   * @param maxBlocks blocks a row has room for; at least those of the longest request
   * @param out at least `length(requests.length, maxBlocks)` entries; the caller owns it
   * @returns entries written
   * @throws {StateError} `out-too-small`, `too-many-blocks`, or as `PageIndexConverter.convert`; nothing is written then
   */
  fill(requests: readonly PageSource[], maxBlocks: number, out: Int32Array): number {
    const length = this.length(requests.length, maxBlocks);
    if (out.length < length) throw outTooSmall(length, out.length);
    try {
      this.#gather(requests, maxBlocks);
      this.#write(requests.length, maxBlocks, out);
    } finally {
      this.#bases.fill(NOTHING);
      this.#scratch.fill(null);
    }
    return length;
  }

  /** Asks every request for its pages and checks them, before the first entry is written. */
  #gather(requests: readonly PageSource[], maxBlocks: number): void {
    let answer = 0;
    for (const { id, isSsm, sections } of this.#lifecycles) {
      for (let request = 0; request < requests.length; request++, answer++) {
        const source = requests[request];
        if (isSsm) {
          this.#states[answer] = source.ssmBlockBaseIndex(id);
          this.#bases[answer] = NOTHING;
          this.#scratch[answer] = null;
          continue;
        }
        const base = source.basePageIndices(id);
        const scratch = source.scratch(id);
        if (base.length > maxBlocks) throw tooManyBlocks(request, base.length, maxBlocks);
        for (const { converter } of sections) converter.assertConvertible(base.length, this.indexMode, scratch);
        this.#states[answer] = BAD_PAGE_INDEX;
        this.#bases[answer] = base;
        this.#scratch[answer] = scratch;
      }
    }
  }

  #write(numRequests: number, maxBlocks: number, out: Int32Array): void {
    let answer = 0;
    for (const { isSsm, sections } of this.#lifecycles) {
      for (let request = 0; request < numRequests; request++, answer++) {
        if (isSsm) this.#state[0] = this.#states[answer];
        const base = isSsm ? this.#state : this.#bases[answer];
        const scratch = isSsm ? null : this.#scratch[answer];
        for (const section of sections) {
          const { converter, entriesPerBlock, fixedEntries } = section;
          const rowLength = entriesPerBlock * maxBlocks + fixedEntries;
          const at = startOf(section, numRequests, maxBlocks) + request * rowLength;
          converter.convertInto(base, this.indexMode, scratch, out, at);
          out.fill(BAD_PAGE_INDEX, at + base.length * converter.expansion, at + rowLength);
        }
      }
    }
  }

  #section(buffer: number): Section {
    const section = this.#sectionOf[buffer];
    if (section === undefined) throw unknownPosition(buffer, this.#sectionOf.length);
    return section;
  }
}

function startOf({ entriesPerBlockBefore, fixedEntriesBefore }: Section, numRequests: number, maxBlocks: number): number {
  return numRequests * (entriesPerBlockBefore * maxBlocks + fixedEntriesBefore);
}

function outTooSmall(length: number, given: number): StateError {
  return new StateError(
    'out-too-small',
    `The table of this step takes ${length} entries, \`out\` has ${given}; pass a longer one.`,
  );
}

function tooManyBlocks(request: number, blocks: number, maxBlocks: number): StateError {
  return new StateError(
    'too-many-blocks',
    `Request ${request} has ${blocks} blocks, rows have room for ${maxBlocks}; pass a larger \`maxBlocks\`.`,
  );
}

function unknownPosition(buffer: number, buffers: number): StateError {
  return new StateError('unknown-table-buffer', `The table has no buffer number ${buffer}: it was made for ${buffers}.`);
}
