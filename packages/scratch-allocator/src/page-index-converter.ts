import { StateError } from '@bufferwise/core-policy';
import type { ScratchDesc } from './scratch/scratch-desc.ts';

/** Stands in an index table where there is no page. */
export const BAD_PAGE_INDEX = -1;

/**
 * Which address an index counts from: `shared` from the buffer's own offset in its pool, so that all buffers of a coalesced
 * buffer read one table; `per_layer` from the start of the pool, so that each buffer has a table of its own.
 */
export type PageIndexMode = 'shared' | 'per_layer';

export interface ConvertOptions {
  /** Default `shared`. */
  indexMode?: PageIndexMode;
  /** Blocks of its range lie in its slots, whatever the base index says. Needs `per_layer`. */
  scratch?: ScratchDesc | null;
  /** Written from index 0; at least `basePageIndices.length × expansion` entries. */
  out?: Int32Array;
}

/** What the converter of a buffer is made from. */
export interface PageIndexScheme {
  /** Buffers in the coalesced buffer. */
  scale: number;
  /** Pages a block. */
  expansion: number;
  /** Position of the buffer among all of the coalesced buffer. */
  layerOffset: number;
  /** Buffers that its layer has in the coalesced buffer. */
  scratchPagesPerBlock: number;
  /** Position of the buffer among those of its layer, below `scratchPagesPerBlock`. */
  rankInLayer: number;
}

/**
 * From the slot ids of a request's blocks to the page indices that a kernel reads one buffer with.
 *
 * A page index counts pages of this buffer's page size. The scratch blocks of a layer are laid end to end over the sub-pages of
 * the scratch slots, so that a block may begin in one slot and end in the next, and no sub-page is wasted or used twice.
 */
export class PageIndexConverter {
  readonly scale: number;
  readonly expansion: number;
  readonly layerOffset: number;
  readonly scratchPagesPerBlock: number;
  readonly rankInLayer: number;

  constructor(scheme: PageIndexScheme) {
    this.scale = scheme.scale;
    this.expansion = scheme.expansion;
    this.layerOffset = scheme.layerOffset;
    this.scratchPagesPerBlock = scheme.scratchPagesPerBlock;
    this.rankInLayer = scheme.rankInLayer;
  }

  /**
   * Converts the blocks of one request.
   *
   * @param basePageIndices slot id of each block in order of ordinal, `BAD_PAGE_INDEX` where there is none
   * @returns `options.out` when given (nothing is allocated then), else a new array of `basePageIndices.length × expansion`;
   *   a block becomes `expansion` entries, each `BAD_PAGE_INDEX` where the base was
   * @throws {StateError} `scratch-needs-per-layer`, `scratch-slots-missing` or `out-too-small`; nothing is written then
   */
  convert(basePageIndices: Int32Array, options?: ConvertOptions): Int32Array {
    const length = basePageIndices.length * this.expansion;
    const out = options?.out ?? new Int32Array(length);
    this.convertInto(basePageIndices, options?.indexMode ?? 'shared', options?.scratch ?? null, out, 0);
    return out;
  }

  /**
   * `convert` for the inside of a step: writes `out[at … at + basePageIndices.length × expansion)` and allocates nothing.
   *
   * @throws {StateError} as `convert`
   */
  convertInto(
    basePageIndices: Int32Array,
    indexMode: PageIndexMode,
    scratch: ScratchDesc | null,
    out: Int32Array,
    at: number,
  ): void {
    const blocks = basePageIndices.length;
    this.assertConvertible(blocks, indexMode, scratch);
    if (at < 0 || at + blocks * this.expansion > out.length) throw outTooSmall(blocks * this.expansion, at, out.length);
    this.#write(basePageIndices, indexMode, scratch, out, at);
  }

  /**
   * Whether `convert` of so many blocks would go through, asked before anything is written.
   *
   * @throws {StateError} `scratch-needs-per-layer` or `scratch-slots-missing` when it would not
   */
  assertConvertible(blocks: number, indexMode: PageIndexMode, scratch: ScratchDesc | null): void {
    if (scratch === null) return;
    if (indexMode !== 'per_layer') throw scratchNeedsPerLayer(indexMode);
    const { begin, end } = scratch.range;
    const subPages = (Math.min(end, blocks) - begin) * this.scratchPagesPerBlock;
    const slots = scratch.slotIds.length;
    if (subPages > slots * this.scale) throw scratchSlotsMissing(subPages, slots, this.scale);
  }

  #write(base: Int32Array, indexMode: PageIndexMode, scratch: ScratchDesc | null, out: Int32Array, at: number): void {
    const offset = indexMode === 'per_layer' ? this.layerOffset : 0;
    const blocks = base.length;
    const begin = scratch === null ? blocks : Math.min(scratch.range.begin, blocks);
    const end = scratch === null ? blocks : Math.max(begin, Math.min(scratch.range.end, blocks));
    this.#writePages(base, 0, begin, offset, out, at);
    if (scratch === null) return;
    this.#writeScratch(scratch.slotIds, end - begin, out, at + begin * this.expansion);
    this.#writePages(base, end, blocks, offset, out, at + end * this.expansion);
  }

  #writePages(base: Int32Array, begin: number, end: number, offset: number, out: Int32Array, at: number): void {
    const { scale, expansion } = this;
    if (expansion === 1) {
      for (let i = begin; i < end; i++) {
        const slot = base[i] as number;
        out[at++] = slot < 0 ? BAD_PAGE_INDEX : slot * scale + offset;
      }
      return;
    }
    for (let i = begin; i < end; i++) {
      const slot = base[i] as number;
      if (slot < 0) {
        for (let j = 0; j < expansion; j++) out[at++] = BAD_PAGE_INDEX;
      } else {
        const first = (slot * scale + offset) * expansion;
        for (let j = 0; j < expansion; j++) out[at++] = first + j;
      }
    }
  }

  /** The first `blocks` scratch blocks. Walks the sub-pages from block to block, which saves a division each. */
  #writeScratch(slotIds: Int32Array, blocks: number, out: Int32Array, at: number): void {
    const { scale, expansion, scratchPagesPerBlock } = this;
    let subPage = this.rankInLayer;
    let slotIndex = 0;
    for (let i = 0; i < blocks; i++) {
      const index = (slotIds[slotIndex] as number) * scale + subPage;
      if (expansion === 1) out[at++] = index;
      else for (let j = 0; j < expansion; j++) out[at++] = index * expansion + j;
      subPage += scratchPagesPerBlock;
      if (subPage >= scale) {
        subPage -= scale;
        slotIndex++;
      }
    }
  }
}

function scratchNeedsPerLayer(indexMode: PageIndexMode): StateError {
  return new StateError(
    'scratch-needs-per-layer',
    `Scratch blocks lie at a different place for each buffer, so index mode "${indexMode}" cannot name them; pass indexMode "per_layer".`,
  );
}

function scratchSlotsMissing(subPages: number, slots: number, scale: number): StateError {
  return new StateError(
    'scratch-slots-missing',
    `${subPages} scratch sub-pages do not fit into ${slots} slots of ${scale} sub-pages; ask \`StorageLayout.scratchSlots\` how many it takes.`,
  );
}

function outTooSmall(entries: number, at: number, length: number): StateError {
  return new StateError(
    'out-too-small',
    `${entries} page indices do not fit from index ${at} into an \`out\` of ${length} entries; pass a longer one.`,
  );
}
